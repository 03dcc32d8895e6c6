#include "symmetric.h"

#include <inttypes.h>

#include "lapack.h"
#include "ranks_of_call.h"

/* Ascending, vectors one after another: as LAPACK does it. */
static int solve(struct workspace *workspace, double *matrix, int n, int k, double *values, double *vectors) {
    const int first = n - k + 1;
    const double unused = 0;
    double size;
    int integers_size;
    int found;
    int info;
    /* Row after row, the upper triangle is LAPACK's lower one. */
    dsyevr_("V", "I", "L", &n, matrix, &n, &unused, &unused, &first, &n, &unused, &found, values, vectors, &n, NULL,
            &size, &(int){-1}, &integers_size, &(int){-1}, &info, 1, 1, 1);
    double *work = workspace_add(workspace, (size_t)size);
    int *integers = (int *)workspace_add(workspace, (size_t)integers_size / 2 + 1);
    int *support = (int *)workspace_add(workspace, (size_t)n);
    if (work == NULL || integers == NULL || support == NULL) return -1;
    dsyevr_("V", "I", "L", &n, matrix, &n, &unused, &unused, &first, &n, &unused, &found, values, vectors, &n, support,
            work, &(int){(int)size}, integers, &integers_size, &info, 1, 1, 1);
    return info != 0 ? info : found - k;
}

int largest_eigenvalues(struct workspace *workspace, double *matrix, uint64_t n, uint64_t k, double *values,
                        double *vectors) {
    supply_call_t *call = workspace->call;
    double *ascending = workspace_add(workspace, n);
    double *columns = workspace_add(workspace, n * k);
    if (workspace_check(workspace) != 0) return 1;
    double status = is_first_rank(call) ? solve(workspace, matrix, (int)n, (int)k, ascending, columns) : 0;
    copy_from_first(call, &status, 1);
    if (status != 0)
        return supply_call_fail(call, "LAPACK's dsyevr failed with %g for a matrix of %" PRIu64 " columns", status, n);
    copy_from_first(call, ascending, k);
    copy_from_first(call, columns, n * k);
    for (uint64_t j = 0; j < k; j++) {
        values[j] = ascending[k - 1 - j];
        for (uint64_t i = 0; i < n; i++) vectors[i * k + j] = columns[(k - 1 - j) * n + i];
    }
    return 0;
}
