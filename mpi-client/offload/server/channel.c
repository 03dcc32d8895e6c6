/**
 * The socket by which Spark sends commands to a rank. The main thread reads; the heartbeat's thread writes as well, so
 * writing has a lock. It trusts only this user and root, and no line's length or form.
 */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"
#include "command_line.h"
#include "files/folder.h"

/* A command has names and numbers only. */
#define COMMAND_BYTES_MAX ((size_t)1 << 20)
#define BACKLOG 16
#define ATTEND_MILLISECONDS 100
#define ACCEPT_PAUSE_SECONDS 0.1
/* Another server has the lock for an instant. */
#define LOCK_SECONDS 10
#define LOCK_PAUSE_SECONDS 1e-3
#define LOCK_SUFFIX ".lock"

/* A socket belongs to a living server if it accepts a connection, or has too many that wait. */
static bool is_in_use(const struct sockaddr_un *address) {
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool in_use =
        probe >= 0 && (connect(probe, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN);
    if (probe >= 0) close(probe);
    return in_use;
}

/* Removes the socket of a dead server. NULL; or why the name cannot be used. */
static const char *remove_stale(const struct channel *channel, const struct sockaddr_un *address) {
    struct stat entry;
    if (fstatat(channel->folder, channel->name, &entry, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? NULL : "cannot be examined";
    if (!S_ISSOCK(entry.st_mode) || entry.st_uid != geteuid())
        return "exists, and is no socket of this user: remove it, or name other files";
    if (is_in_use(address)) return "is in use by another supply-server: end that one, or name other files";
    return unlinkat(channel->folder, channel->name, 0) == 0 ? NULL : "is stale and cannot be removed";
}

/* Locks a file that its holder removes. Returns the descriptor; -1: another process has the lock, or errno. */
static int try_lock(int folder, const char *name) {
    struct stat file;
    const int lock = openat(folder, name, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (lock < 0) return -1;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &file) == 0 &&
        supply__folder_has(folder, name, file.st_dev, file.st_ino))
        return lock;
    close(lock);
    errno = EWOULDBLOCK;
    return -1;
}

/* Without it, of two servers that start together, one would remove the living socket of the other. -1 and errno. */
static int lock_name(int folder, const char *name) {
    struct wait wait = supply__wait_begin_slow((struct wait_limit){.seconds = LOCK_SECONDS}, LOCK_PAUSE_SECONDS);
    int lock;
    while ((lock = try_lock(folder, name)) < 0 && errno == EWOULDBLOCK)
        if (supply__wait_more(&wait) != SUPPLY_OK) break;
    return lock;
}

static bool listen_on(struct channel *channel, const struct sockaddr_un *address) {
    channel->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t mask = umask(S_IRWXG | S_IRWXO);
    const bool bound = channel->listening >= 0 &&
                       bind(channel->listening, (const struct sockaddr *)address, sizeof *address) == 0 &&
                       listen(channel->listening, BACKLOG) == 0;
    umask(mask);
    return bound && fstatat(channel->folder, channel->name, &channel->file, AT_SYMLINK_NOFOLLOW) == 0;
}

/* NULL; or what is wrong. */
static const char *bind_name(struct channel *channel, char *reason, size_t reason_bytes) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char lock_file[sizeof channel->name + sizeof LOCK_SUFFIX];
    /* The path of the folder may lead elsewhere by now. */
    const int bytes =
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", channel->folder, channel->name);
    if (bytes < 0 || (size_t)bytes >= sizeof address.sun_path) return "has too long a name: choose a shorter one";
    snprintf(lock_file, sizeof lock_file, "%s" LOCK_SUFFIX, channel->name);
    const int lock = lock_name(channel->folder, lock_file);
    if (lock < 0) {
        snprintf(reason, reason_bytes, "cannot be locked (" LOCK_SUFFIX "): %s", strerror(errno));
        return reason;
    }
    const char *wrong = remove_stale(channel, &address);
    if (wrong == NULL && !listen_on(channel, &address)) {
        snprintf(reason, reason_bytes, "cannot be created: %s", strerror(errno));
        wrong = reason;
    }
    unlinkat(channel->folder, lock_file, 0);
    close(lock);
    return wrong;
}

bool channel_open(struct channel *channel, int folder, const char *path, char *text, size_t text_bytes) {
    char reason[256];
    *channel = CHANNEL_NONE;
    channel->folder = folder;
    pthread_mutex_init(&channel->lock, NULL);
    /* Spark connects by the path. */
    if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path) {
        snprintf(text, text_bytes, "the socket %s: its path has more than %zu bytes: choose a shorter folder", path,
                 sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
        return false;
    }
    snprintf(channel->name, sizeof channel->name, "%s", strrchr(path, '/') + 1);
    const char *wrong = bind_name(channel, reason, sizeof reason);
    if (wrong != NULL) snprintf(text, text_bytes, "the socket %s %s", path, wrong);
    return wrong == NULL;
}

static bool is_own_user(int connection) {
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static struct timeval timeval_of(double seconds) {
    const struct timeval limit = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)(seconds * 1e6) % 1000000};
    return limit;
}

/* The next bytes of a line, all of which must be there at `end`. As recv(). */
static ssize_t channel_receive(int connection, char *to, size_t bytes, int64_t end) {
    /* 0 would be no limit. */
    const double left = (double)(end - supply__clock_now()) / 1e9;
    const struct timeval limit = timeval_of(left > 1e-6 ? left : 1e-6);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return recv(connection, to, bytes, left > 0 ? 0 : MSG_DONTWAIT);
}

/* One line. NULL: the other side sent none, or one that is no command: *wrong says why. */
static json_t *read_command(int connection, double seconds, const char **wrong) {
    const int64_t end = supply__clock_after(seconds);
    size_t bytes = 0;
    char *line = malloc(COMMAND_BYTES_MAX);
    json_t *command = NULL;
    while (line != NULL && supply__clock_now() < end) {
        if (bytes == COMMAND_BYTES_MAX) {
            /* The other side reads the answer when it has sent the whole line. */
            *wrong = "the command has more than 1 MiB: give shorter texts";
            bytes = 0;
        }
        const ssize_t got = channel_receive(connection, line + bytes, COMMAND_BYTES_MAX - bytes, end);
        if (got < 0 && errno == EINTR && interruption_signal() == 0) continue;
        if (got <= 0) break;
        bytes += (size_t)got;
        if (line[bytes - 1] != '\n') continue;
        if (*wrong == NULL) command = json_loadb(line, bytes, 0, NULL);
        if (*wrong == NULL && !json_is_object(command)) *wrong = "a command is a JSON object on one line";
        break;
    }
    free(line);
    if (*wrong == NULL) return command;
    json_decref(command);
    return NULL;
}

json_t *channel_next(struct channel *channel, void (*attend)(void *), void *context) {
    for (;;) {
        struct pollfd ready[] = {{.fd = channel->listening, .events = POLLIN},
                                 {.fd = interruption_fd(), .events = POLLIN}};
        poll(ready, 2, attend == NULL ? -1 : ATTEND_MILLISECONDS);
        if (interruption_signal() != 0) return NULL;
        if (attend != NULL) attend(context);
        const int connection = accept4(channel->listening, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0) {
            /* Without descriptors or memory the program stays in the queue: a loop without a pause would keep a core.
             */
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) supply__sleep(ACCEPT_PAUSE_SECONDS);
            continue;
        }
        const struct timeval limit = timeval_of(channel->peer_seconds);
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        const char *wrong = NULL;
        json_t *command = is_own_user(connection) ? read_command(connection, channel->peer_seconds, &wrong) : NULL;
        pthread_mutex_lock(&channel->lock);
        channel->connection = connection;
        pthread_mutex_unlock(&channel->lock);
        if (command != NULL) return command;
        if (wrong != NULL) channel_send(channel, json_pack("{s:s}", "error", wrong), NULL, 0);
        channel_end_answer(channel);
    }
}

static bool send_all(int connection, const char *data, size_t bytes) {
    while (bytes > 0) {
        const ssize_t sent = send(connection, data, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        data += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

bool channel_send(struct channel *channel, json_t *line, const void *data, size_t bytes) {
    char *text = json_dumps(line, JSON_COMPACT);
    json_decref(line);
    if (text == NULL) return false;
    pthread_mutex_lock(&channel->lock);
    const bool sent = channel->connection >= 0 && send_all(channel->connection, text, strlen(text)) &&
                      send_all(channel->connection, "\n", 1) && send_all(channel->connection, data, bytes);
    pthread_mutex_unlock(&channel->lock);
    free(text);
    return sent;
}

bool channel_is_closed(const struct channel *channel) {
    struct pollfd state = {.fd = channel->connection, .events = POLLRDHUP};
    return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void channel_end_answer(struct channel *channel) {
    pthread_mutex_lock(&channel->lock);
    if (channel->connection >= 0) close(channel->connection);
    channel->connection = -1;
    pthread_mutex_unlock(&channel->lock);
}

void channel_remove(const struct channel *channel) {
    if (channel->file.st_ino != 0 &&
        supply__folder_has(channel->folder, channel->name, channel->file.st_dev, channel->file.st_ino))
        unlinkat(channel->folder, channel->name, 0);
}

void channel_close(struct channel *channel) {
    channel_end_answer(channel);
    /* First, since nobody replaces the socket of a program that listens. */
    channel_remove(channel);
    if (channel->listening >= 0) close(channel->listening);
    if (channel->folder >= 0) close(channel->folder);
}
