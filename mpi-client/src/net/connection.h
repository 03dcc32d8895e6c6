/** TCP connections to the driver's hub and to executors, with their proofs of the run's key (docs/design/hub.md). */
#pragma once

#include <sys/uio.h>

#include "base/failure.h"
#include "net/tls.h"

/** Of a run or of data in it: characters, without the zero byte. */
#define RUN_NAME_MAX 64

/** Where a run is: "supply://HOST:PORT/RUN[/DATA]", with TLS "supplys://". */
struct address {
    char text[512]; /**< as given, for messages */
    char host[256];
    char port[8];
    bool is_tls;
    char run[RUN_NAME_MAX + 1];
    char data[RUN_NAME_MAX + 1]; /**< "": the run's only data */
    uint8_t key[DIGEST_BYTES];
};

/** SUPPLY_OK, or _CONFIG: it is none. key: the text that the run's user has given. */
supply_status_t supply__address_read(struct address *address, const char *text, const char *key,
                                     struct failure *failure);

/** "HOST:PORT" or "HOST:PORT/tls", as the hub answers. False: it is none. */
bool supply__address_read_place(struct address *address, const char *place);

/** The roles of connections. */
enum { ROLE_PLACE = 3, ROLE_LINK = 4 };

/** A connection, which one thread uses. Waits end when `stop` can be read. */
struct connection {
    int fd; /**< non-blocking; -1: none */
    int stop;
    struct tls *tls;
};

#define CONNECTION_NONE ((struct connection){.fd = -1, .stop = -1})

/**
 * Connects to that address, and proves that both ends know the key, within `seconds`. SUPPLY_OK; SUPPLY_INTERRUPTED: to
 * be stopped; SUPPLY_AGAIN: not now, and failure->text says why; or a failure that lasts (_CONFIG, _MEMORY). Close it
 * in any case.
 */
supply_status_t supply__connection_open(struct connection *connection, const struct address *address, int role,
                                        int stop, double seconds, struct failure *failure);

/** Closes it, if it is open. */
void supply__connection_close(struct connection *connection);

/**
 * As readv() and writev(), one call. -1 and EAGAIN: *events is what poll() must wait for. Never raises SIGPIPE without
 * TLS; the caller blocks it.
 */
ssize_t supply__connection_read(struct connection *connection, const struct iovec *to, int count, short *events);
ssize_t supply__connection_write(struct connection *connection, const struct iovec *from, int count, short *events);

/** Reads or writes all of it within `seconds`. SUPPLY_OK; SUPPLY_INTERRUPTED; SUPPLY_AGAIN with a text: it is lost. */
supply_status_t supply__connection_read_all(struct connection *connection, void *to, size_t bytes, double seconds,
                                            struct failure *failure);
supply_status_t supply__connection_write_all(struct connection *connection, const void *from, size_t bytes,
                                             double seconds, struct failure *failure);
