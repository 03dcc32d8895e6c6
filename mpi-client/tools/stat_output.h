/** The output of supply-stat: a table, or a line of JSON. */
#pragma once

#include <stdio.h>

#include "pair_snapshot.h"

/** Prints a table. redraws: on a terminal, over the previous table, and no larger than the window. */
void stat_table_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress, bool redraws);

/** Prints the snapshots of all pairs on one line. Unknown values are null. False: no memory, or the stream failed. */
bool stat_json_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress);

/** Prints one sample for each pair that has a known value, metric by metric. Totals are those since the pair began. */
void prometheus_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress);
