/** The first centers of k-means. */
#ifndef KMEANS_START_H
#define KMEANS_START_H

#include "nearest_center.h"

/**
 * k-means|| (Bahmani, Moseley, Vattani, Kumar, Vassilvitskii, PVLDB 5, 2012): k rows at random, then two rounds that
 * take about k rows each, more likely if they are far from all that were taken; candidates.h then picks k of them.
 * centers: k × columns, alike on all ranks, less the means as the portions are. Not 0: the call has failed. Collective.
 */
int kmeans_start(struct workspace *workspace, const struct portions *portions, uint64_t k, uint64_t seed,
                 double *centers);

#endif
