/** The output of supply-stat for people. */
#ifndef STAT_TABLE_H
#define STAT_TABLE_H

#include <stdio.h>

#include "pair_progress.h"

/** Prints a table. redraws: on a terminal, over the previous table, and no larger than the window. */
void stat_table_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress, bool redraws);

#endif
