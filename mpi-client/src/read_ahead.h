/** Reading ahead in resident files, which may be larger than the memory. */
#ifndef SUPPLY_READ_AHEAD_H
#define SUPPLY_READ_AHEAD_H

#include "block.h"

/** Has the kernel read the next published block, unless it follows the received one in the same file. */
void supply_read_ahead(const struct blocks *blocks, const struct pair *pair, const struct notification *received);

#endif
