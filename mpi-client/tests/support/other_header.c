/*
 * A program built with another version of supply.h: OTHER_HEADER is its function. Returns what is wrong, or NULL.
 * expected: the value of the only element of each block, or NULL: supply_value() does not find it.
 */
#include <string.h>

#include "supply.h"

/* After each struct, to see that the library does not write past it. */
#define GUARD_BYTES 64
static const unsigned char guard[GUARD_BYTES] = {1, 2, 3};

#define GUARDED(type, name)                                                                                            \
    struct {                                                                                                           \
        type value;                                                                                                    \
        unsigned char guard[GUARD_BYTES];                                                                              \
    } name;                                                                                                            \
    memset(&name.value, 0xA5, sizeof name.value);                                                                      \
    memcpy(name.guard, guard, sizeof guard)
#define IS_INTACT(name) (memcmp(name.guard, guard, sizeof guard) == 0)

#ifdef HAS_ADDED
#define IS_UNKNOWN(name) (name.value.added == 0)
#else
#define IS_UNKNOWN(name) true
#endif

/* The only value of a column. Returns what is wrong, or NULL. */
static const char *read_value(const supply_column_t *column, const char *expected) {
    const void *data;
    size_t bytes;
    int64_t end = 0;
    char gathered[GUARD_BYTES];
    const supply_status_t value = supply_value(column, 0, &data, &bytes);
    const supply_status_t gather = supply_gather(column, 0, 1, &end, gathered, sizeof gathered);
    if (expected == NULL)
        return value == SUPPLY_ERROR_CONTRACT && gather == SUPPLY_ERROR_CONTRACT ? NULL : "a value that it cannot find";
    const size_t length = strlen(expected);
    if (value != SUPPLY_OK || bytes != length || memcmp(data, expected, length) != 0) return "supply_value";
    if (gather != SUPPLY_OK || end != (int64_t)length || memcmp(gathered, expected, length) != 0)
        return "supply_gather";
    return NULL;
}

/* A block and its last column. Returns what is wrong, or NULL. */
static const char *receive_by_columns(supply_t *supply, const char *expected) {
    const char *problem = NULL;
    GUARDED(supply_block_t, block);
    GUARDED(supply_column_t, column);
    if (supply_next(supply, &block.value) != SUPPLY_OK) return "supply_next";
    if (!IS_INTACT(block) || !IS_UNKNOWN(block)) problem = "the size of supply_block_t";
    if (supply_column(supply, &block.value, 6, &column.value) != SUPPLY_OK) return "supply_column";
    if (!IS_INTACT(column) || !IS_UNKNOWN(column)) problem = "the size of supply_column_t";
    if (problem == NULL) problem = read_value(&column.value, expected);
    if (supply_release(supply, &block.value) != SUPPLY_OK) problem = "supply_release";
    return problem;
}

const char *OTHER_HEADER(const char *mapped_file, const char *request_pipe, const char *notification_pipe,
                         void supply_elements(void *), void *context, const char *expected);

const char *OTHER_HEADER(const char *mapped_file, const char *request_pipe, const char *notification_pipe,
                         void supply_elements(void *), void *context, const char *expected) {
    supply_t *supply;
    GUARDED(supply_options_t, options);
    supply_options_init(&options.value);
    if (!IS_INTACT(options) || !IS_UNKNOWN(options)) return "supply_options_init";
    options.value.mapped_file = mapped_file;
    options.value.request_pipe = request_pipe;
    options.value.notification_pipe = notification_pipe;
#ifdef HAS_ADDED
    options.value.added = 1;
    supply_status_t refused = supply_open(&supply, &options.value);
    const bool is_named = strstr(supply_error(supply), "does not know") != NULL;
    supply_close(supply);
    if (refused != SUPPLY_ERROR_ARGUMENT || !is_named) return "an option that the library does not know";
    options.value.added = 0;
#endif
    if (supply_open(&supply, &options.value) != SUPPLY_OK) return "supply_open";
    supply_elements(context);

    const char *problem = receive_by_columns(supply, expected);
    GUARDED(supply_datum_t, datum);
    GUARDED(supply_statistics_t, statistics);
    if (supply_next_datum(supply, &datum.value) != SUPPLY_OK || datum.value.label != 7) problem = "supply_next_datum";
    if (!IS_INTACT(datum) || !IS_UNKNOWN(datum)) problem = "the size of supply_datum_t";
    GUARDED(supply_counts_t, counts);
    if (supply_counts(supply, &counts.value) != SUPPLY_AGAIN || counts.value.epoch_elements != 0)
        problem = "supply_counts";
    if (!IS_INTACT(counts) || !IS_UNKNOWN(counts)) problem = "the size of supply_counts_t";
    supply_get_statistics(supply, &statistics.value);
    if (statistics.value.elements != 2) problem = "supply_get_statistics";
    if (!IS_INTACT(statistics) || !IS_UNKNOWN(statistics)) problem = "the size of supply_statistics_t";
    supply_close(supply);
    return problem;
}
