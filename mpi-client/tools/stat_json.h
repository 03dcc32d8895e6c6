/** What supply-stat tells programs. */
#ifndef STAT_JSON_H
#define STAT_JSON_H

#include <stdio.h>

#include "pair_progress.h"

/** Prints one look at all pairs as one line. What is not known is null. False: out of memory, or the stream has failed.
 */
bool stat_json_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress);

#endif
