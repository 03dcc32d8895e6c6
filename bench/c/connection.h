/** The consumer's end of a peer that sends over a loopback socket: commands or data in, one byte back for each round.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

/** Listens on a free port of the loopback, prints the port as JSON on stdout, and accepts one sender. */
int accept_sender(void);

/** Reads what is there, at most `bytes`; 0 at the end. */
size_t receive_some(int socket, void *to, size_t bytes);

/** Tells the sender that everything of the round has been read. */
void acknowledge_round(int socket);

#endif
