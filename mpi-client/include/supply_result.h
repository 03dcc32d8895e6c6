/**
 * Results of libsupply: a rank writes rows, and Spark reads them as a DataFrame, in place.
 *
 *     const supply_field_t fields[] = {{.name = "id", .format = "l"}, {.name = "score", .format = "f"}};
 *     supply_result_t *result;
 *     if (supply_result_open(&result, supply, "scores", fields, 2) != SUPPLY_OK) die(supply_result_error(result));
 *     const supply_column_t columns[] = {{.element_count = n, .data = ids, .data_bytes = n * sizeof *ids},
 *                                        {.element_count = n, .data = scores, .data_bytes = n * sizeof *scores}};
 *     if (supply_result_write(result, columns, 2) != SUPPLY_OK) die(supply_result_error(result));
 *     if (supply_result_seal(result) != SUPPLY_OK) die(supply_result_error(result));
 *
 * Each rank of a run writes its own file of a result: PAIR.NAME.result, with PAIR the name of its mapped file. The
 * result is complete when every rank has sealed its file. A rank without rows seals an empty one. Spark removes the
 * files, and so does the next supply_open() of the pair.
 *
 * A result has its own handle, and may outlive the pair's. A program that receives nothing needs no pair:
 * supply_result_create(). Threads: use a handle from one thread at a time. A forked
 * child must call supply_result_abandon_in_child(). supply_result_abort() does the same there, and calls that write
 * fail with SUPPLY_ERROR_ARGUMENT.
 */
#ifndef SUPPLY_RESULT_H
#define SUPPLY_RESULT_H

#include "supply_arrow.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The file of this rank's part of a result, while it is written. Opaque. */
typedef struct supply_result supply_result_t;

/**
 * Begins a result of an open pair. The file lies in options.results_folder of supply_open(), and belongs to this user
 * and the pair's group.
 *
 * name: 1 to 64 of the characters A-Z a-z 0-9 _ -; each result of a pair has its own. fields: names and types of the
 * columns and of their children, `count` of them, at least 1. Formats are those of supply_column(), except "vz".
 * Everything is copied.
 *
 * Children: a field with child_count n is followed by its n children, each followed by its own. This is the order in
 * which supply_field_child() finds them. For a struct of x and y, then a list of texts:
 *
 *     {{.name = "point", .format = "+s", .child_count = 2}, {.name = "x", .format = "f"}, {.name = "y", .format = "f"},
 *      {.name = "words", .format = "+l", .child_count = 1}, {.name = "item", .format = "u"}}
 *
 * A map "+m" has one child, a struct of its keys and its values; both the struct and the keys are never null. Children
 * of lists and maps need no names. child_format: only of a list "+w:N" without a child, whose numbers are never null;
 * else ignored, or NULL.
 *
 * On failure *result is a handle whose other calls return the same failure, and which supply_result_abort() frees; it
 * is NULL if there is no memory even for that.
 *
 * SUPPLY_OK, or _ARGUMENT (the name, the fields, or a result that is sealed already), _CONFIG, _IN_USE (the program
 * writes that result already), _NO_SPACE, _SYSTEM, _MEMORY.
 */
SUPPLY_API supply_status_t supply_result_open(supply_result_t **result, supply_t *supply, const char *name,
                                              const supply_field_t *fields, int count);

/**
 * As supply_result_open(), for a program that only writes: no pair is opened. options: as for supply_open(), where the
 * config files, or the paths, say in which folder and under which name Spark looks for this rank's part.
 *
 * Unlike supply_open(), the call removes no result of an earlier run: a sealed one of that name is _ARGUMENT. So let
 * every rank begin before one seals (a barrier): otherwise parts of two runs may be taken for one result. Spark removes
 * the results that it has read. Such a result names no Spark process, so supply-clean removes it unless Spark reads it
 * at that moment: run supply-clean before, or with --keep-results.
 */
SUPPLY_API supply_status_t supply_result_create(supply_result_t **result, const supply_options_t *options,
                                                const char *name, const supply_field_t *fields, int count);

/**
 * Appends columns[0].element_count rows. columns: `count` of them, in the order of the fields, as supply_column() and
 * supply_column_child() return them: also those of a held block. In each, the call reads element_count; validity (NULL:
 * every row has a value; a bit of 0 is an error unless the field is nullable); offsets (element_count + 1, if the
 * format is "z", "u", "+l" or "+m"); data and data_bytes, if it has no children. format and child_format must be those
 * of the field, or NULL.
 *
 * element_count is the same in all columns. That of a child is at least the last offset of its list, N for each element
 * of a list "+w:N", or that of its struct. What a child has for a null parent means nothing, and may be null.
 *
 * Values are copied: the buffers are the caller's again after the call.
 *
 * The rows become visible to Spark when every rank has sealed its file. A block is as large as the pair's blocks, and a
 * row must fit into a block.
 *
 * SUPPLY_OK, or _ARGUMENT: nothing was written, and the result can be written further. After every other status each
 * later call fails with it, so that Spark never sees an incomplete result: _CONFIG (a row does not fit into a block),
 * _NO_SPACE, _SYSTEM, _MEMORY.
 */
SUPPLY_API supply_status_t supply_result_write(supply_result_t *result, const supply_column_t *columns, int count);

/**
 * As supply_result_open(), with the fields of an Arrow schema: that of a struct (a record batch). Texts and bytes with
 * 64-bit offsets ("U", "Z") or as views ("vu", "vz") become "u" and "z", and a list "+L" becomes "+l". A list "+w:N" of
 * numbers that are not nullable has no child, but its child_format.
 */
SUPPLY_API supply_status_t supply_result_open_arrow(supply_result_t **result, supply_t *supply, const char *name,
                                                    const struct ArrowSchema *schema);

/**
 * Appends the rows of an Arrow record batch. Its columns, and the fields of structs, are found by their names, and may
 * have another order than those of the result. Types must be those of the result; texts and bytes may have any of
 * Arrow's layouts, lists 32-bit or 64-bit offsets. Dictionaries are refused: cast them. So is a
 * row that is null as a whole. Both structs are only read, and stay the caller's. Otherwise as supply_result_write().
 */
SUPPLY_API supply_status_t supply_result_write_arrow(supply_result_t *result, const struct ArrowSchema *schema,
                                                     const struct ArrowArray *array);

/**
 * Completes the result: nobody changes it from now on. A program that also reads calls it when it has the end of the
 * data, and before supply_finish(): Spark may read the result as soon as its run has ended. SUPPLY_OK: the handle is
 * freed. Every other status leaves it to supply_result_error() and supply_result_abort(): _ARGUMENT, _NO_SPACE,
 * _SYSTEM, or that of a write that failed. A rank elsewhere waits for Spark, too: SUPPLY_INTERRUPTED, after which it
 * may call again, _TIMEOUT (Spark takes nothing), _SPARK.
 */
SUPPLY_API supply_status_t supply_result_seal(supply_result_t *result);

/**
 * Says why this rank has no result, as when its loop has failed: Spark fails with this text when it reads it. Otherwise
 * it says only that the rank died. The handle is freed in any case. NULL
 * is allowed for both. SUPPLY_OK, or _SYSTEM: the text could not be written (errno says why), and Spark is told that
 * the rank died.
 */
SUPPLY_API supply_status_t supply_result_abort(supply_result_t *result, const char *reason);

/**
 * For a forked child, as supply_abandon_in_child(): closes its copy of the file and frees its copy of the handle. If it
 * kept the file open, Spark would not see that the rank has died. The parent's result does not change. NULL is allowed.
 * SUPPLY_OK, or _ARGUMENT in the process that opened the result: then nothing happens.
 */
SUPPLY_API supply_status_t supply_result_abandon_in_child(supply_result_t *result);

/** The rows that were written so far, and the path of the file that they will have when it is sealed. */
SUPPLY_API uint64_t supply_result_rows(const supply_result_t *result);
SUPPLY_API const char *supply_result_path(const supply_result_t *result);

/**
 * Text of the last call on this handle that failed: one line that names the result and the column. Valid until the next
 * call. NULL: text for a handle that supply_result_open() could not allocate. Never NULL.
 */
SUPPLY_API const char *supply_result_error(const supply_result_t *result);

/** errno of that failure if its status is SUPPLY_ERROR_SYSTEM; else 0. */
SUPPLY_API int supply_result_error_errno(const supply_result_t *result);

#ifdef __cplusplus
}
#endif

#endif
