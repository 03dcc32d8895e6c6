/** Routines for the fuzzer `commands`: parameters of every type, with and without a default; both kinds of results. */
#include <stddef.h>

#include "supply_routine.h"

/* Either few values, or more than a node has memory for. */
#define FEW 4096
#define TOO_MANY ((int64_t)1 << 48)

static int make(supply_call_t *call) {
    const int64_t rows = supply_call_integer(call, "rows"), columns = supply_call_integer(call, "columns");
    int64_t values;
    if (rows < 0 || columns < 0 || supply_call_text(call, "text")[0] == '\0')
        return supply_call_fail(call, "%g: %s", supply_call_number(call, "number"), supply_call_text(call, "text"));
    if (!__builtin_mul_overflow(rows, columns, &values) && values > FEW && values < TOO_MANY) return 1;
    double *array = supply_call_array(call, "array", (uint64_t)rows, (uint64_t)columns);
    if (array == NULL) return 1;
    for (int64_t i = 0; i < rows * columns; i++) array[i] = supply_call_number(call, "number");
    return 0;
}

static int copy(supply_call_t *call) {
    const supply_matrix_t *from = supply_call_matrix(call, "A");
    supply_matrix_t *to = supply_call_rows(call, "rows", from, from->columns);
    if (to == NULL) return 1;
    for (uint64_t i = 0; i < from->local_rows * from->columns; i++) to->values[i] = from->values[i];
    return supply_call_cancelled(call);
}

const supply_routine_t supply_routines[] = {
    {"make",
     make,
     {{"rows", SUPPLY_INTEGER, NULL},
      {"columns", SUPPLY_INTEGER, "2"},
      {"number", SUPPLY_NUMBER, "0.5"},
      {"text", SUPPLY_TEXT, "text"}},
     {"array"}},
    {"copy", copy, {{"A", SUPPLY_MATRIX, NULL}}, {"rows"}},
    {"forget", copy, {{"A", SUPPLY_MATRIX, NULL}}, {"rows", "forgotten"}},
    {.name = NULL},
};
