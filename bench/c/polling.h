/** What plain processes that poll share: memory, and counts in it. */
#ifndef POLLING_H
#define POLLING_H

#include <stdatomic.h>
#include <stddef.h>

/** Memory that processes forked from now on see, with all of its pages. Ends the program if there is none. */
void *mapped(size_t bytes);

/** Polls until the count has that value, or more. After some polls it lets others run. */
void await(const atomic_ulong *count, size_t value);

#endif
