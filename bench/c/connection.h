/** The consumer's end of a loopback socket: it receives commands or data, and sends one byte after each round. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

/** Listens on a free port of the loopback, prints the port as JSON on stdout, and accepts one sender. */
int accept_sender(void);

/** Reads the available bytes, at most `bytes`; 0 at the end. */
size_t receive_some(int socket, void *to, size_t bytes);

/** Tells the sender that the consumer has read the whole round. */
void acknowledge_round(int socket);

#endif
