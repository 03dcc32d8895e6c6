/** The nearest center of each row. */
#ifndef NEAREST_CENTER_H
#define NEAREST_CENTER_H

#include "portions.h"

struct nearest_center {
    const struct portions *portions; /**< less the means: distances by products then keep their digits */
    double *products;                /**< rows of a portion × centers */
    double *squares;                 /**< of the norms of the centers */
};

/** centers_max: the most centers of a call. workspace_check() must follow. */
void nearest_center_init(struct nearest_center *nearest, struct workspace *workspace, const struct portions *portions,
                         uint64_t centers_max);

/** Sets the centers of the next calls: count × columns, less the means. */
void nearest_center_prepare(struct nearest_center *nearest, const double *centers, uint64_t count);

/**
 * For each row of a portion the number of its nearest center: the least ‖c‖² − 2 aᵀc, all by one dgemm. Of equally near
 * ones the first. labels: one for each row.
 */
void nearest_center_find(const struct nearest_center *nearest, const double *values, uint64_t rows,
                         const double *centers, uint64_t count, double *labels);

double squared_distance(const double *left, const double *right, uint64_t count);

#endif
