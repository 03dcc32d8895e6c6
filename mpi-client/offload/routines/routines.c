/** The table of routines that supply-server finds in libsupply_linalg: names, parameters, results. */
#include "routines.h"

#include <cblas.h>
#include <stdlib.h>

const supply_routine_t supply_routines[] = {
    {"gram", routine_gram, {{"A", SUPPLY_MATRIX, NULL}}, {"gram"}},
    {"column_statistics", routine_column_statistics, {{"A", SUPPLY_MATRIX, NULL}}, {"mean", "variance"}},
    {"truncated_svd",
     routine_truncated_svd,
     {{"A", SUPPLY_MATRIX, NULL}, {"k", SUPPLY_INTEGER, NULL}, {"method", SUPPLY_TEXT, "auto"}},
     {"U", "S", "V"}},
    {"pca",
     routine_pca,
     {{"A", SUPPLY_MATRIX, NULL}, {"k", SUPPLY_INTEGER, NULL}, {"method", SUPPLY_TEXT, "auto"}},
     {"components", "variance", "mean", "scores"}},
    {"multiply", routine_multiply, {{"A", SUPPLY_MATRIX, NULL}, {"B", SUPPLY_MATRIX, NULL}}, {"C"}},
    {"transpose_multiply", routine_transpose_multiply, {{"A", SUPPLY_MATRIX, NULL}, {"B", SUPPLY_MATRIX, NULL}}, {"C"}},
    {"ridge",
     routine_ridge,
     {{"A", SUPPLY_MATRIX, NULL},
      {"b", SUPPLY_MATRIX, NULL},
      {"l2", SUPPLY_NUMBER, "0"},
      {"intercept", SUPPLY_INTEGER, "1"},
      {"method", SUPPLY_TEXT, "auto"},
      {"tolerance", SUPPLY_NUMBER, "1e-10"},
      {"iterations", SUPPLY_INTEGER, "1000"}},
     {"coefficients", "intercept"}},
    {"kmeans",
     routine_kmeans,
     {{"A", SUPPLY_MATRIX, NULL},
      {"k", SUPPLY_INTEGER, NULL},
      {"iterations", SUPPLY_INTEGER, "20"},
      {"seed", SUPPLY_INTEGER, "0"},
      {"tolerance", SUPPLY_NUMBER, "1e-4"}},
     {"centers", "labels", "cost"}},
    {"qr", routine_qr, {{"A", SUPPLY_MATRIX, NULL}}, {"Q", "R"}},
    {"random_features",
     routine_random_features,
     {{"A", SUPPLY_MATRIX, NULL},
      {"features", SUPPLY_INTEGER, NULL},
      {"bandwidth", SUPPLY_NUMBER, "1"},
      {"seed", SUPPLY_INTEGER, "0"}},
     {"Z"}},
    {"gram_vector",
     routine_gram_vector,
     {{"A", SUPPLY_MATRIX, NULL}, {"v", SUPPLY_MATRIX, NULL}, {"iterations", SUPPLY_INTEGER, "1"}},
     {"vector"}},
    {"eigenvalues",
     routine_eigenvalues,
     {{"A", SUPPLY_MATRIX, NULL}, {"k", SUPPLY_INTEGER, NULL}, {"which", SUPPLY_TEXT, "largest"}},
     {"vectors", "values"}},
    {.name = NULL},
};

/* The ranks of a node share its cores: threads of BLAS would only get into each other's way. */
__attribute__((constructor)) static void use_one_thread(void) {
    if (getenv("OPENBLAS_NUM_THREADS") == NULL && getenv("OMP_NUM_THREADS") == NULL) openblas_set_num_threads(1);
}
