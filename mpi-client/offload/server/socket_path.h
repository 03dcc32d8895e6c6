/** Where the socket of a rank is. */
#ifndef SOCKET_PATH_H
#define SOCKET_PATH_H

#include "supply.h"

/**
 * The path of the socket, next to the mapped file of the pair; free() it. folder: gets its folder, which is made and
 * checked as a pair's, and which the caller closes. timeout: gets the timeout of each wait in seconds, from the options
 * or the environment. NULL: text says why.
 */
char *socket_path(const supply_options_t *options, int *folder, double *timeout, char *text);

#endif
