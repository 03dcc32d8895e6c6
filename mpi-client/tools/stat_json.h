/** The output of supply-stat for programs. */
#ifndef STAT_JSON_H
#define STAT_JSON_H

#include <stdio.h>

#include "pair_progress.h"

/** Prints the snapshots of all pairs on one line. Unknown values are null. False: no memory, or the stream failed. */
bool stat_json_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress);

#endif
