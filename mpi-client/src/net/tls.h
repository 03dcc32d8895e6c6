/** TLS over a connection, by the OpenSSL of this machine, which is loaded when a connection needs it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"
#include "net/proof.h"

struct tls;

/**
 * Begins TLS 1.2 or 1.3 as the client of a socket, which stays the caller's. SUPPLY_OK, or _CONFIG (no OpenSSL),
 * _MEMORY. *tls: free it with supply__tls_free().
 */
supply_status_t supply__tls_begin(struct tls **tls, int fd, struct failure *failure);

/** Continues the handshake: 1 when it is done; otherwise as supply__tls_read(). */
ssize_t supply__tls_shake(struct tls *tls, short *events);

/** As read() and write() of a non-blocking socket. -1 and EAGAIN: *events is what poll() must wait for. */
ssize_t supply__tls_read(struct tls *tls, void *to, size_t bytes, short *events);
ssize_t supply__tls_write(struct tls *tls, const void *from, size_t bytes, short *events);

/** SHA-256 of the server's certificate. Nobody checks who has signed it: the proofs cover it. False: there is none. */
bool supply__tls_certificate(struct tls *tls, uint8_t digest[DIGEST_BYTES]);

void supply__tls_free(struct tls *tls);
