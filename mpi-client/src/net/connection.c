/** Connections that do not block: each wait ends by its limit, and when the handle is closed. */
#include "net/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* With the hub's own: a silent node is found within a minute. */
enum { KEEP_IDLE = 30, KEEP_INTERVAL = 10, KEEP_COUNT = 3, USER_TIMEOUT_MILLISECONDS = 60000 };

enum { RANDOM_BYTES = 32, STATUS_NO_SUCH_RUN = 1 };

static bool is_name(const char *text, size_t length) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return length >= 1 && length <= RUN_NAME_MAX && strspn(text, allowed) >= length;
}

/* "HOST:PORT", or "[ADDRESS]:PORT" of IPv6. */
static bool read_host_and_port(struct address *address, const char *text, size_t length) {
    const char *colon = memrchr(text, ':', length);
    if (colon == NULL || colon == text) return false;
    size_t host = (size_t)(colon - text), port = length - host - 1;
    if (*text == '[' && text[host - 1] == ']') {
        text++;
        host -= 2;
    }
    if (host == 0 || host >= sizeof address->host || port == 0 || port >= sizeof address->port ||
        strspn(colon + 1, "0123456789") < port)
        return false;
    snprintf(address->host, sizeof address->host, "%.*s", (int)host, text);
    snprintf(address->port, sizeof address->port, "%.*s", (int)port, colon + 1);
    return true;
}

static bool read_address(struct address *address, const char *text) {
    static const char plain[] = "supply://", tls[] = "supplys://";
    address->is_tls = strncmp(text, tls, strlen(tls)) == 0;
    if (!address->is_tls && strncmp(text, plain, strlen(plain)) != 0) return false;
    const char *host = text + strlen(address->is_tls ? tls : plain), *run = strchr(host, '/');
    if (run == NULL || !read_host_and_port(address, host, (size_t)(run - host))) return false;
    run++;
    const size_t length = strcspn(run, "/");
    const char *data = run[length] == '/' ? run + length + 1 : NULL;
    if (!is_name(run, length) || (data != NULL && !is_name(data, strlen(data)))) return false;
    snprintf(address->run, sizeof address->run, "%.*s", (int)length, run);
    snprintf(address->data, sizeof address->data, "%s", data != NULL ? data : "");
    return true;
}

supply_status_t supply__address_read(struct address *address, const char *text, const char *key,
                                     struct failure *failure) {
    *address = (struct address){0};
    snprintf(address->text, sizeof address->text, "%s", text);
    if (strlen(text) >= sizeof address->text || !read_address(address, text))
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "'%s' is no address of a run: it is supply://HOST:PORT/RUN, as Spark's side prints it "
                            "(options.connect, SUPPLY_CONNECT)",
                            text);
    if (key == NULL)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%s: its key is missing: set options.key or SUPPLY_KEY to what Spark's side prints", text);
    supply__sha256(key, strlen(key), address->key);
    return SUPPLY_OK;
}

bool supply__address_read_place(struct address *address, const char *place) {
    const char *slash = strchr(place, '/');
    const size_t length = slash != NULL ? (size_t)(slash - place) : strlen(place);
    address->is_tls = slash != NULL && strcmp(slash, "/tls") == 0;
    return (slash == NULL || address->is_tls) && read_host_and_port(address, place, length);
}

/* SUPPLY_OK: the socket is ready. */
static supply_status_t wait_for(const struct connection *connection, short events, int64_t end,
                                struct failure *failure) {
    struct pollfd pollers[] = {{.fd = connection->fd, .events = events}, {.fd = connection->stop, .events = POLLIN}};
    for (;;) {
        const int64_t left = end - supply__clock_now();
        const int ready = poll(pollers, 2, left > 0 ? (int)(left / 1000000 + 1) : 0);
        if (ready < 0 && errno != EINTR) return supply__fail(failure, SUPPLY_AGAIN, "poll failed: %m");
        if (ready > 0 && pollers[1].revents != 0) return SUPPLY_INTERRUPTED;
        if (ready > 0) return SUPPLY_OK;
        if (left <= 0) return supply__fail(failure, SUPPLY_AGAIN, "no answer within the time limit");
    }
}

ssize_t supply__connection_read(struct connection *connection, const struct iovec *to, int count, short *events) {
    *events = POLLIN;
    if (connection->tls != NULL) return supply__tls_read(connection->tls, to->iov_base, to->iov_len, events);
    return readv(connection->fd, to, count);
}

ssize_t supply__connection_write(struct connection *connection, const struct iovec *from, int count, short *events) {
    *events = POLLOUT;
    if (connection->tls != NULL) return supply__tls_write(connection->tls, from->iov_base, from->iov_len, events);
    const struct msghdr message = {.msg_iov = (struct iovec *)from, .msg_iovlen = (size_t)count};
    return sendmsg(connection->fd, &message, MSG_NOSIGNAL);
}

static supply_status_t move_all(struct connection *connection, struct iovec all, bool is_read, int64_t end,
                                struct failure *failure) {
    while (all.iov_len > 0) {
        short events;
        const ssize_t moved = is_read ? supply__connection_read(connection, &all, 1, &events)
                                      : supply__connection_write(connection, &all, 1, &events);
        if (moved > 0) {
            all.iov_base = (uint8_t *)all.iov_base + moved;
            all.iov_len -= (size_t)moved;
        } else if (moved == 0)
            return supply__fail(failure, SUPPLY_AGAIN, "the other end has closed the connection");
        else if (errno == EAGAIN)
            TRY(wait_for(connection, events, end, failure));
        else if (errno != EINTR)
            return supply__fail(failure, SUPPLY_AGAIN, "the connection is lost: %m");
    }
    return SUPPLY_OK;
}

supply_status_t supply__connection_read_all(struct connection *connection, void *to, size_t bytes, double seconds,
                                            struct failure *failure) {
    return move_all(connection, (struct iovec){to, bytes}, true, supply__clock_after(seconds), failure);
}

supply_status_t supply__connection_write_all(struct connection *connection, const void *from, size_t bytes,
                                             double seconds, struct failure *failure) {
    return move_all(connection, (struct iovec){(void *)from, bytes}, false, supply__clock_after(seconds), failure);
}

static void set_options(int fd) {
    const int on = 1, idle = KEEP_IDLE, interval = KEEP_INTERVAL, count = KEEP_COUNT, user = USER_TIMEOUT_MILLISECONDS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user, sizeof user);
}

static supply_status_t connect_one(struct connection *connection, const struct addrinfo *found, int64_t end,
                                   struct failure *failure) {
    connection->fd = socket(found->ai_family, found->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol);
    if (connection->fd < 0) return supply__fail(failure, SUPPLY_AGAIN, "no socket: %m");
    set_options(connection->fd);
    if (connect(connection->fd, found->ai_addr, found->ai_addrlen) == 0) return SUPPLY_OK;
    int error = errno;
    socklen_t bytes = sizeof error;
    if (error == EINPROGRESS) {
        TRY(wait_for(connection, POLLOUT, end, failure));
        if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
    }
    if (error == 0) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_AGAIN, "%s", strerror(error));
}

static supply_status_t connect_any(struct connection *connection, const struct address *address, int64_t end,
                                   struct failure *failure) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(address->host, address->port, &hints, &found);
    if (error != 0) return supply__fail(failure, SUPPLY_AGAIN, "its name has no address (%s)", gai_strerror(error));
    supply_status_t status = SUPPLY_AGAIN;
    int left = 0;
    for (const struct addrinfo *each = found; each != NULL; each = each->ai_next) left++;
    /* Each has its part of the time: one that answers nothing must not take that of the others. */
    for (const struct addrinfo *each = found; each != NULL && status == SUPPLY_AGAIN; each = each->ai_next) {
        const int64_t now = supply__clock_now();
        supply__connection_close(connection);
        status = connect_one(connection, each, now + (end - now) / left--, failure);
    }
    freeaddrinfo(found);
    return status;
}

static supply_status_t shake(struct connection *connection, int64_t end, struct failure *failure) {
    TRY(supply__tls_begin(&connection->tls, connection->fd, failure));
    for (;;) {
        short events = POLLIN;
        const ssize_t shaken = supply__tls_shake(connection->tls, &events);
        if (shaken > 0) return SUPPLY_OK;
        if (shaken == 0 || errno != EAGAIN)
            return supply__fail(failure, SUPPLY_AGAIN, "there is no TLS with it: is its address supply://?");
        TRY(wait_for(connection, events, end, failure));
    }
}

static supply_status_t meet(struct connection *connection, const struct address *address, int role, int64_t end,
                            struct failure *failure) {
    struct {
        uint8_t head[11]; /* magic, role, length of the name */
        uint8_t rest[RUN_NAME_MAX + RANDOM_BYTES];
    } hello = {.head = "SUPPLYH1"};
    const size_t name = strlen(address->run);
    hello.head[8] = (uint8_t)role;
    hello.head[10] = (uint8_t)name;
    memcpy(hello.rest, address->run, name);
    uint8_t *own = hello.rest + name, certificate[DIGEST_BYTES], theirs[1 + RANDOM_BYTES], proof[DIGEST_BYTES];
    if (getrandom(own, RANDOM_BYTES, 0) != RANDOM_BYTES)
        return supply__fail(failure, SUPPLY_AGAIN, "getrandom failed: %m");
    const size_t of_certificate =
        connection->tls != NULL && supply__tls_certificate(connection->tls, certificate) ? sizeof certificate : 0;
    struct iovec parts = {&hello, sizeof hello.head + name + RANDOM_BYTES};
    TRY(move_all(connection, parts, false, end, failure));
    TRY(move_all(connection, (struct iovec){theirs, sizeof theirs}, true, end, failure));
    if (theirs[0] == STATUS_NO_SUCH_RUN)
        return supply__fail(failure, SUPPLY_AGAIN, "there is no run %s: it has ended, or not begun", address->run);
    if (theirs[0] != 0)
        return supply__fail(failure, SUPPLY_AGAIN,
                            "it answers as no hub, or with TLS only: then the address is supplys://…");
    const struct proof_part first[] = {
        {"peer", 4}, {theirs + 1, RANDOM_BYTES}, {own, RANDOM_BYTES}, {certificate, of_certificate}};
    supply__proof(address->key, first, PROOF_PARTS_MAX, proof);
    TRY(move_all(connection, (struct iovec){proof, sizeof proof}, false, end, failure));
    uint8_t answer[DIGEST_BYTES];
    const supply_status_t status = move_all(connection, (struct iovec){answer, sizeof answer}, true, end, failure);
    char byte;
    /* A hub that refuses the key closes. Whatever else ends a connection may be over soon. */
    if (status != SUPPLY_OK && (status == SUPPLY_INTERRUPTED || role != ROLE_PLACE ||
                                recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0))
        return status;
    const struct proof_part second[] = {
        {"hub", 3}, {own, RANDOM_BYTES}, {theirs + 1, RANDOM_BYTES}, {certificate, of_certificate}};
    supply__proof(address->key, second, PROOF_PARTS_MAX, proof);
    if (status == SUPPLY_OK && supply__digests_equal(proof, answer)) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                        "it refuses the key, or does not know it itself: SUPPLY_KEY must be what Spark's side has");
}

supply_status_t supply__connection_open(struct connection *connection, const struct address *address, int role,
                                        int stop, double seconds, struct failure *failure) {
    const int64_t end = supply__clock_after(seconds);
    *connection = (struct connection){.fd = -1, .stop = stop};
    supply_status_t status = connect_any(connection, address, end, failure);
    if (status == SUPPLY_OK && address->is_tls) status = shake(connection, end, failure);
    if (status == SUPPLY_OK) status = meet(connection, address, role, end, failure);
    if (status == SUPPLY_OK || status == SUPPLY_INTERRUPTED) return status;
    return supply__fail(failure, status, "%s:%s: %s", address->host, address->port, failure->text);
}

void supply__connection_close(struct connection *connection) {
    supply__tls_free(connection->tls);
    /* A forked child may have a copy of the descriptor. */
    if (connection->fd >= 0) shutdown(connection->fd, SHUT_RDWR);
    if (connection->fd >= 0) close(connection->fd);
    connection->tls = NULL;
    connection->fd = -1;
}
