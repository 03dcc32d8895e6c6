/** Whether the nodes have the memory that their ranks are about to use. */
#ifndef NEEDED_MEMORY_H
#define NEEDED_MEMORY_H

#include "ranks.h"

/**
 * Sets text if the ranks of this node need more than it has free. bytes: of this rank. what: who needs it, such as
 * "the matrix". Collective. text: FAILURE_TEXT_BYTES, "" before.
 */
void check_needed_memory(const struct ranks *ranks, double bytes, const char *what, char *text);

#endif
