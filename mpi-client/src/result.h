/** The handle of a result: supply_result_t. */
#ifndef SUPPLY_RESULT_HANDLE_H
#define SUPPLY_RESULT_HANDLE_H

#include "block_writer.h"
#include "handle.h"
#include "result_file.h"
#include "supply_result.h"

struct supply_result {
    bool is_open;
    pid_t process; /**< the opener: a forked child must not change the result */
    struct schema schema;
    struct block_writer writer;
    struct result_file file;
    char *name;             /**< "result 'scores' (/path)", for messages */
    char *pair_origin;      /**< source of the pair's block size, for messages */
    uint64_t rows;          /**< written, also those of the block under construction */
    struct failure failure; /**< of the last call that failed */
    struct failure broken;  /**< status not SUPPLY_OK: the result has lost rows, so it cannot be sealed */
};

/** Fails with the result's name in front of the text. Returns status. */
__attribute__((format(printf, 3, 4))) supply_status_t supply_result_fail(supply_result_t *result,
                                                                         supply_status_t status, const char *format,
                                                                         ...);

/** supply_result_open() with a schema, which the handle takes over. Otherwise as that. */
supply_status_t supply_result_open_schema(supply_result_t **result, const supply_t *supply, const char *name,
                                          struct schema *schema);

/** Appends checked rows, one struct for each column. SUPPLY_OK, or as supply_result_write(), except _ARGUMENT. */
supply_status_t supply_result_append(supply_result_t *result, const struct column_rows *rows, uint64_t count);

/** SUPPLY_OK if the result can be written; else why not. */
supply_status_t supply_result_check_open(supply_result_t *result);

#endif
