#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "interruption.h"

/* A command has names and numbers only. */
#define COMMAND_BYTES_MAX ((size_t)1 << 20)
/* How long a connected program may take to send a command, or to read a part of its answer. */
#define PEER_SECONDS 30
#define BACKLOG 16
#define ATTEND_MILLISECONDS 100

/* A socket whose name is in use belongs to a living server if a program accepts a connection on it. */
static bool is_in_use(const struct sockaddr_un *address) {
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool in_use = probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) == 0;
    if (probe >= 0) close(probe);
    return in_use;
}

bool channel_open(struct channel *channel, const char *path, char *text, size_t text_bytes) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *channel = CHANNEL_NONE;
    pthread_mutex_init(&channel->lock, NULL);
    if (strlen(path) >= sizeof address.sun_path) {
        snprintf(text, text_bytes, "the socket %s: its path has more than %zu bytes: choose a shorter folder", path,
                 sizeof address.sun_path - 1);
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (is_in_use(&address)) {
        snprintf(text, text_bytes,
                 "the socket %s is in use by another supply-server: end that one, or name other files", path);
        return false;
    }
    unlink(path);
    channel->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t mask = umask(S_IRWXG | S_IRWXO);
    const bool bound = channel->listening >= 0 &&
                       bind(channel->listening, (const struct sockaddr *)&address, sizeof address) == 0 &&
                       listen(channel->listening, BACKLOG) == 0;
    umask(mask);
    if (!bound) {
        snprintf(text, text_bytes, "the socket %s cannot be created: %s", path, strerror(errno));
        return false;
    }
    memcpy(channel->path, path, strlen(path) + 1);
    return true;
}

static bool is_own_user(int connection) {
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void set_limits(int connection) {
    const struct timeval limit = {.tv_sec = PEER_SECONDS};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* One line. NULL: the other side sent none, or one that is no command: *wrong says why. */
static json_t *read_command(int connection, const char **wrong) {
    size_t bytes = 0;
    char *line = malloc(COMMAND_BYTES_MAX);
    json_t *command = NULL;
    while (line != NULL) {
        if (bytes == COMMAND_BYTES_MAX) {
            /* The other side reads the answer when it has sent the whole line. */
            *wrong = "the command has more than 1 MiB: give shorter texts";
            bytes = 0;
        }
        const ssize_t got = recv(connection, line + bytes, COMMAND_BYTES_MAX - bytes, 0);
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
        if (connection < 0) continue;
        set_limits(connection);
        const char *wrong = NULL;
        json_t *command = is_own_user(connection) ? read_command(connection, &wrong) : NULL;
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

void channel_close(struct channel *channel) {
    channel_end_answer(channel);
    if (channel->listening < 0) return;
    close(channel->listening);
    unlink(channel->path);
}
