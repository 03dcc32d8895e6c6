/** The output of supply-stat for Prometheus: its text format, version 0.0.4. */
#ifndef SUPPLY_TOOLS_PROMETHEUS_OUTPUT_H
#define SUPPLY_TOOLS_PROMETHEUS_OUTPUT_H

#include <stdio.h>

#include "pair_snapshot.h"

/** Prints one sample for each pair that has a known value, metric by metric. Totals are those since the pair began. */
void prometheus_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress);

#endif
