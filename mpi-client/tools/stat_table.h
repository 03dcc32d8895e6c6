/** What supply-stat shows to people. */
#ifndef STAT_TABLE_H
#define STAT_TABLE_H

#include <stdio.h>

#include "pair_progress.h"

/** Prints a table; on a terminal (in_place) over the one before, and no larger than its window. */
void stat_table_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress, bool in_place);

#endif
