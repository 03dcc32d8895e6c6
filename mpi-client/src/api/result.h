/**
 * The handle of a result: supply_result_t; its schema, as a program gives it; and its columns, checked before a row of
 * them is appended.
 */
#pragma once

#include "block/block_writer.h"
#include "api/handle.h"
#include "block/result_file.h"
#include "supply_result.h"

struct supply_result {
    bool is_open;
    pid_t process; /**< the opener, for messages */
    bool *is_mine; /**< base/opener.h: a forked child must not change the result */
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
__attribute__((format(printf, 3, 4))) supply_status_t supply__result_fail(supply_result_t *result,
                                                                          supply_status_t status, const char *format,
                                                                          ...);

/** The name of an entry with those around it, for messages: "tokens.item". */
static inline struct schema_path supply__result_path(const supply_result_t *result, uint32_t entry) {
    return supply__schema_path(&result->schema, entry);
}

/** supply_result_open() with a schema, which the handle takes over. Otherwise as that. */
supply_status_t supply__result_open_schema(supply_result_t *result, const supply_t *supply, const char *name,
                                           struct schema *schema);

/** supply_result_create(), in the same way. */
supply_status_t supply__result_create_schema(supply_result_t *result, const supply_options_t *options, const char *name,
                                             struct schema *schema);

/** Appends checked rows, one struct for each entry of the schema. SUPPLY_OK, or as supply_result_write(), except
 * _ARGUMENT. */
supply_status_t supply__result_append(supply_result_t *result, const struct column_rows *rows, uint64_t count);

/** SUPPLY_OK if the result can be written; else why not. */
supply_status_t supply__result_check_open(supply_result_t *result);

/** No limit: the program does not say how many bytes a buffer has. */
#define BYTES_UNKNOWN UINT64_MAX

/** Checks `count` rows. rows: of each entry of the schema. SUPPLY_OK, or _ARGUMENT. */
supply_status_t supply__result_check_rows(supply_result_t *result, const struct column_rows *rows, uint64_t count);

/**
 * Allocates a handle, checks what every way to open a result has, and allocates a schema of `count` empty entries.
 * SUPPLY_OK, or _ARGUMENT, _MEMORY. Free *schema in any case.
 */
supply_status_t supply__result_begin(supply_result_t **result, const char *name, int64_t count, struct schema *schema);

/** Sets an entry of the schema. SUPPLY_OK, or _ARGUMENT. */
supply_status_t supply__result_set_field(supply_result_t *result, struct schema *schema, uint32_t index,
                                         const supply_field_t *field);

/** Completes and checks the schema when all entries are set. SUPPLY_OK, or _ARGUMENT, _MEMORY. */
supply_status_t supply__result_check_fields(supply_result_t *result, struct schema *schema);
