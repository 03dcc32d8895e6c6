/**
 * The schema of a pair: names and types of its columns, how their values are laid out, and where the parts of a block
 * begin (proto/PROTOCOL.md, "Block").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "layout.h"
#include "pair/mapped_file.h"

/** How the values of a format are laid out. */
enum format_layout {
    FORMAT_UNKNOWN,
    FORMAT_BITS,
    FORMAT_FIXED,
    FORMAT_VARIABLE,
    FORMAT_VIEWS,
    FORMAT_STRUCT,    /**< children with as many elements */
    FORMAT_LIST,      /**< offsets of the elements in a child; also a map */
    FORMAT_FIXED_LIST /**< list_size elements of a child for each element */
};

struct format {
    enum format_layout layout;
    uint32_t bytes;     /**< of an element, if layout is FORMAT_FIXED */
    uint32_t list_size; /**< values of an element, if it is a list of one length; else 0 */
};

/** Whether values of the format have Arrow's offsets: texts and bytes in data, elements of lists in their child. */
static inline bool supply__has_offsets(const struct format *format) {
    return format->layout == FORMAT_VARIABLE || format->layout == FORMAT_LIST;
}

/** A copy of this process, which the task cannot change after the check. */
struct schema {
    struct schema_entry *entries; /**< of the columns and of their children, each before its own children; then texts */
    struct format *formats;       /**< of the entries. FORMAT_UNKNOWN: nobody reads it, nor what belongs to it */
    uint32_t *ends;               /**< of the entries: the first entry after those that belong to it */
    uint32_t *columns;            /**< the entries that are no children; NULL: all entries */
    uint32_t count;               /**< entries */
    uint32_t text_bytes;          /**< of the texts after the entries: names that are too long for them */
    uint32_t column_count;
};

/** The names that are too long for their entries, each with a zero byte at its end. */
static inline const char *supply__schema_texts(const struct schema *schema) {
    return (const char *)(schema->entries + schema->count);
}

static inline const char *supply__schema_name(const struct schema *schema, uint32_t entry) {
    const struct schema_entry *from = &schema->entries[entry];
    return from->name_bytes > 0 ? supply__schema_texts(schema) + from->name_offset : from->name;
}

/** Of the entries and their texts. */
static inline size_t supply__schema_bytes(const struct schema *schema) {
    return schema->count * sizeof *schema->entries + schema->text_bytes;
}

/** Whether it does not lie at SCHEMA_OFFSET. */
static inline bool supply__schema_is_wide(const struct schema *schema) {
    return schema->count > SCHEMA_COLUMNS_MAX || schema->text_bytes > 0;
}

/** Where the blocks of a block file with that schema begin. */
static inline uint64_t supply__block_file_ring_offset(const struct schema *schema) {
    const uint64_t bytes = supply__schema_is_wide(schema) ? supply__schema_bytes(schema) : 0;
    return RING_OFFSET + (bytes + BLOCK_BYTES_UNIT - 1) / BLOCK_BYTES_UNIT * BLOCK_BYTES_UNIT;
}

/** A copy of entries and texts, which are `text_bytes` after the entries. SUPPLY_OK, or _MEMORY. */
supply_status_t supply__schema_copy(struct schema *schema, const void *entries, uint32_t count, uint32_t text_bytes,
                                    struct failure *failure);

/** Sets the name of an entry, once. Its text may need more memory. SUPPLY_OK, or _MEMORY, _ARGUMENT: too long. */
supply_status_t supply__schema_set_name(struct schema *schema, uint32_t entry, const char *name,
                                        struct failure *failure);

/** What supply_field_t and supply_column_t call child_format. */
static inline const char *supply__schema_child_format(const struct schema *schema, uint32_t entry) {
    const struct format *format = &schema->formats[entry];
    const bool is_list = format->layout == FORMAT_LIST || format->layout == FORMAT_FIXED_LIST;
    return is_list ? schema->entries[entry + 1].format : schema->entries[entry].child_format;
}

/** The entry of that column. */
static inline uint32_t supply__schema_entry(const struct schema *schema, uint32_t column) {
    return schema->columns != NULL ? schema->columns[column] : column;
}

/** Copies and checks the schema in the mapped file. SUPPLY_OK, or _CONTRACT, _MEMORY. */
supply_status_t supply__schema_read(struct schema *schema, const struct mapped_file *mapped, struct failure *failure);
/** SUPPLY_OK if all texts of the entries end with a zero byte, where they must; else _CONTRACT. */
supply_status_t supply__schema_check_texts(const struct schema *schema, struct failure *failure);

/**
 * Fills in what follows from the entries: formats, ends, columns. SUPPLY_OK, or _CONTRACT: the children are more
 * than the entries, or too deep; or _MEMORY. Free *schema in any case.
 */
supply_status_t supply__schema_index_entries(struct schema *schema, struct failure *failure);

void supply__schema_free(struct schema *schema);

/** Index of the column of that name; -1: there is none. */
int supply__schema_index(const struct schema *schema, const char *name);

/** Of an entry with that number of children. */
struct format supply__schema_format(const struct schema_entry *entry);

/** The names of an entry's parents and its own: "point.x". */
struct schema_path {
    char text[256];
};
struct schema_path supply__schema_path(const struct schema *schema, uint32_t entry);

/** The entry of child `number` of an entry that has more. */
uint32_t supply__schema_child(const struct schema *schema, uint32_t entry, uint32_t number);

/** The bytes with what aligns the next buffer. */
static inline size_t supply__aligned(size_t bytes) {
    return (bytes + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
}

/** Bytes in front of the first buffer: the header and the table of that many columns. */
static inline size_t supply__block_header_bytes(uint32_t columns) {
    return supply__aligned(sizeof(struct block_header) + columns * sizeof(struct block_column));
}
