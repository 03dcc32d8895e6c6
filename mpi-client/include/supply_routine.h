/**
 * Routines of MPI programs that Spark calls: what a shared library exports, and what it may call.
 *
 *     static int column_sums(supply_call_t *call) { … }
 *     const supply_routine_t supply_routines[] = {
 *         {"column_sums", column_sums, {{"A", SUPPLY_MATRIX}}, {"sums"}},
 *         {.name = NULL},
 *     };
 *
 * Compile it as a shared library (cc -shared -fPIC). supply-server loads it, and exports the functions that are
 * declared here, and no others. All ranks call a routine with the same parameters, on their main threads.
 * docs/OFFLOAD.md shows an example.
 */
#ifndef SUPPLY_ROUTINE_H
#define SUPPLY_ROUTINE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters, and results, that a routine may have. */
#define SUPPLY_ROUTINE_PARAMETERS_MAX 16
#define SUPPLY_ROUTINE_RESULTS_MAX 8

typedef struct supply_call supply_call_t;

typedef enum supply_parameter_type {
    SUPPLY_NO_PARAMETER = 0, /**< ends the list of parameters */
    SUPPLY_MATRIX = 1,       /**< a handle of Spark's program */
    SUPPLY_INTEGER = 2,      /**< 64 bits */
    SUPPLY_NUMBER = 3,       /**< a double */
    SUPPLY_TEXT = 4,
} supply_parameter_type_t;

typedef struct supply_parameter_t {
    const char *name;
    supply_parameter_type_t type;
    const char *default_value; /**< as text; NULL: the caller must give it. A matrix has none */
} supply_parameter_t;

/** A routine. The list ends with one whose name is NULL. */
typedef struct supply_routine_t {
    const char *name;
    /** Returns 0, or what supply_call_fail() returns. All ranks must succeed or fail alike. */
    int (*run)(supply_call_t *call);
    supply_parameter_t parameters[SUPPLY_ROUTINE_PARAMETERS_MAX]; /**< until one whose name is NULL */
    const char *results[SUPPLY_ROUTINE_RESULTS_MAX];              /**< names, in the order that the caller gets them */
} supply_routine_t;

#if defined(__GNUC__)
#define SUPPLY_ROUTINE_API __attribute__((visibility("default")))
#else
#define SUPPLY_ROUTINE_API
#endif

/**
 * The symbol that a library exports. Its name has the number of the table's layout, so that supply-server refuses a
 * library that was compiled with another one.
 */
#define supply_routines supply_routines_1
SUPPLY_ROUTINE_API extern const supply_routine_t supply_routines[];

/**
 * The rows of a matrix that this rank has: `local_rows` rows from number `first_row` on. Ranks have them in rank order.
 * Dense: `values`, row after row; `row_offsets` is NULL. Sparse: row i has the entries row_offsets[i] …
 * row_offsets[i+1] − 1 of `column_indices` and `entries`; `values` is NULL.
 */
typedef struct supply_matrix_t {
    uint64_t rows; /**< on all ranks */
    uint64_t columns;
    uint64_t first_row;
    uint64_t local_rows;
    double *values; /**< local_rows × columns, 64-byte aligned */
    const uint64_t *row_offsets;
    const uint32_t *column_indices;
    const double *entries;
} supply_matrix_t;

/** Of all ranks that run the routine, and of this call alone. The routine must not free it. */
SUPPLY_ROUTINE_API MPI_Comm supply_call_comm(const supply_call_t *call);

/**
 * The value of a parameter. The name must be one of the routine's own parameters, of that type; otherwise the program
 * ends with a message. A matrix must not be changed.
 */
SUPPLY_ROUTINE_API const supply_matrix_t *supply_call_matrix(const supply_call_t *call, const char *name);
SUPPLY_ROUTINE_API int64_t supply_call_integer(const supply_call_t *call, const char *name);
SUPPLY_ROUTINE_API double supply_call_number(const supply_call_t *call, const char *name);
SUPPLY_ROUTINE_API const char *supply_call_text(const supply_call_t *call, const char *name);

/**
 * Makes a result with as many rows as `like` and the same keys, on the same ranks; it stays with the ranks, and Spark's
 * program gets a handle. The values are 0. A routine makes each result once. Collective. NULL, on all ranks: one of
 * them has no memory, and the call has failed with a text that names its node; return a number that is not 0.
 */
SUPPLY_ROUTINE_API supply_matrix_t *supply_call_rows(supply_call_t *call, const char *result,
                                                     const supply_matrix_t *like, uint64_t columns);

/**
 * Makes a small result, which all ranks compute alike, row after row. Spark's program gets the values of rank 0. The
 * values are 0. Collective. NULL: as for supply_call_rows().
 */
SUPPLY_ROUTINE_API double *supply_call_array(supply_call_t *call, const char *result, uint64_t rows, uint64_t columns);

/**
 * Checks that each node has the memory that the routine is about to allocate, besides its results. bytes: what this
 * rank will allocate. A routine that allocates without asking may be killed by the kernel, and all matrices are lost
 * with its rank. Collective. Not 0, on all ranks: a node has too little, and the call has failed with a text that names
 * it; return the number.
 */
SUPPLY_ROUTINE_API int supply_call_check_memory(supply_call_t *call, uint64_t bytes);

/** How much is done: `step` of at most `of` steps, such as iterations. Any rank may call it, at any time. */
SUPPLY_ROUTINE_API void supply_call_progress(supply_call_t *call, uint64_t step, uint64_t of);

/**
 * Whether the call was cancelled, for example by Ctrl-C in the notebook. All ranks must call it alike, and get the same
 * answer: it communicates. A routine that gets true returns what supply_call_fail() returns.
 */
SUPPLY_ROUTINE_API bool supply_call_cancelled(supply_call_t *call);

/** Remembers why the routine fails: one line, as printf. Returns a number that is not 0. */
__attribute__((format(printf, 2, 3))) SUPPLY_ROUTINE_API int supply_call_fail(supply_call_t *call, const char *format,
                                                                              ...);

#ifdef __cplusplus
}
#endif

#endif
