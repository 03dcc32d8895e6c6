/** Where the socket of a rank is. */
#ifndef SOCKET_PATH_H
#define SOCKET_PATH_H

#include "supply.h"

/**
 * The path of the socket, beside the mapped file of the pair, whose folder is made and checked as a pair's; free() it.
 * timeout: gets the limit of each wait in seconds, from the options or the environment. NULL: text says why.
 */
char *socket_path(const supply_options_t *options, double *timeout, char *text);

#endif
