/**
 * Blocks through the Arrow C Data Interface. Values stay in the ring; offsets and views are copied, because consumers
 * trust them. Any thread may release an array. The handle's lock covers what that changes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "base/shared.h"
#include "block/foreign_files.h"
#include "supply_arrow.h"

/* Validity and views, the windows, and the lengths of the windows. */
enum { BUFFERS_BESIDE_WINDOWS = 3 };

/* Bytes of memory that arrow_views() needs for the column. */
static size_t arrow_views_bytes(uint32_t element_count, uint32_t window_count) {
    return element_count * sizeof(supply_view_t) + window_count * sizeof(int64_t) +
           (window_count + (size_t)BUFFERS_BESIDE_WINDOWS) * sizeof(const void *);
}

static const uint8_t *start_of(const supply_column_t *column, const supply_view_t *view) {
    return (const uint8_t *)column->windows[view->window].address + view->offset;
}

static bool copy_views(const supply_column_t *column, supply_view_t *copy) {
    memcpy(copy, column->views, column->element_count * sizeof *copy);
    const void *data;
    for (uint32_t i = 0; i < column->element_count; i++)
        if (!supply__view_is_inline(&copy[i]) &&
            !supply__view_find(&copy[i], column->windows, column->window_count, &data))
            return false;
    return true;
}

/*
 * Lets each buffer begin with the first value in its window and end with the last one. Consumers that write an array to
 * a file or to another process write whole buffers, and a window has up to 2 GiB.
 */
static void trim_windows(const supply_column_t *column, supply_view_t *views, const void **buffers, int64_t *lengths) {
    for (uint32_t i = 0; i < column->window_count; i++) {
        buffers[i] = (const uint8_t *)column->windows[i].address + column->windows[i].bytes;
        lengths[i] = 0;
    }
    for (uint32_t i = 0; i < column->element_count; i++) {
        if (supply__view_is_inline(&views[i])) continue;
        const uint8_t *start = start_of(column, &views[i]);
        if (start < (const uint8_t *)buffers[views[i].window]) buffers[views[i].window] = start;
    }
    for (uint32_t i = 0; i < column->element_count; i++) {
        supply_view_t *view = &views[i];
        if (supply__view_is_inline(view)) continue;
        view->offset = (int32_t)(start_of(column, view) - (const uint8_t *)buffers[view->window]);
        const int64_t end = (int64_t)view->offset + view->bytes;
        if (end > lengths[view->window]) lengths[view->window] = end;
    }
}

/*
 * Points the array's buffers to the column's values. The views are copied to the memory, because consumers trust them
 * and the task could change those in the mapped file. Each window is cut to the part with values. False: the views have
 * changed since they were checked.
 */
static bool arrow_views(const supply_column_t *column, void *memory, struct ArrowArray *array) {
    supply_view_t *views = memory;
    int64_t *lengths = (int64_t *)(views + column->element_count);
    const void **buffers = (const void **)(lengths + column->window_count);
    if (!copy_views(column, views)) return false;
    buffers[0] = column->validity;
    buffers[1] = views;
    trim_windows(column, views, buffers + 2, lengths);
    buffers[2 + column->window_count] = lengths;
    array->buffers = buffers;
    array->n_buffers = (int64_t)column->window_count + BUFFERS_BESIDE_WINDOWS;
    return true;
}

/* A schema is one piece of memory, an array another. Each is freed when the last of its structures is released. */

struct schema_node {
    struct ArrowSchema schema;
    struct ArrowSchema *child;
    char name[sizeof((struct schema_entry *)0)->name];
    char format[sizeof((struct schema_entry *)0)->format];
};

struct schema_export {
    uint32_t references; /* structures that are not released */
    struct ArrowSchema **columns;
    struct schema_node nodes[];
};

struct array_node {
    struct ArrowArray array;
    struct ArrowArray *child;
    const void *buffers[3];
};

struct array_export {
    uint32_t references;
    struct exports *exports;
    uint64_t sequence;
    struct ArrowArray **columns;
    const void *no_validity;
    uint8_t *copies; /* of offsets and views: where the next column's begins */
    struct array_node nodes[];
};

static void release_schema(struct ArrowSchema *schema) {
    struct schema_export *export = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release != NULL) schema->children[i]->release(schema->children[i]);
    schema->release = NULL;
    if (__atomic_sub_fetch(&export->references, 1, __ATOMIC_ACQ_REL) == 0) free(export);
}

static void release_array(struct ArrowArray *array) {
    struct array_export *export = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
    array->release = NULL;
    if (__atomic_sub_fetch(&export->references, 1, __ATOMIC_ACQ_REL) != 0) return;
    supply__exports_remove(export->exports, export->sequence);
    free(export);
}

/* `count` columns: two nodes for each, itself and the values of a list, and the list of columns of their parent. */

static struct schema_export *new_schema(size_t count) {
    const size_t bytes = sizeof(struct schema_export) + 2 * count * sizeof(struct schema_node);
    struct schema_export *export = calloc(1, bytes + count * sizeof *export->columns);
    if (export != NULL) export->columns = (struct ArrowSchema **)((uint8_t *)export + bytes);
    return export;
}

static struct array_export *new_array(size_t count, size_t copied_bytes) {
    const size_t bytes = sizeof(struct array_export) + 2 * count * sizeof(struct array_node);
    struct array_export *export = calloc(1, bytes + count * sizeof *export->columns + copied_bytes);
    if (export == NULL) return NULL;
    export->columns = (struct ArrowArray **)((uint8_t *)export + bytes);
    export->copies = (uint8_t *)(export->columns + count);
    return export;
}

static void fill_schema(struct schema_export *export, struct schema_node *node, const struct schema_entry *entry,
                        struct ArrowSchema *schema) {
    const bool is_list = supply__schema_format(entry).list_size > 0;
    memcpy(node[0].name, entry->name, sizeof entry->name);
    memcpy(node[0].format, entry->format, sizeof entry->format);
    *schema = (struct ArrowSchema){
        .format = node[0].format,
        .name = node[0].name,
        .flags = entry->flags & COLUMN_NULLABLE ? ARROW_FLAG_NULLABLE : 0,
        .n_children = is_list ? 1 : 0,
        .children = is_list ? &node[0].child : NULL,
        .release = release_schema,
        .private_data = export,
    };
    export->references++;
    if (!is_list) return;
    snprintf(node[1].name, sizeof node[1].name, "item");
    memcpy(node[1].format, entry->child_format, sizeof entry->child_format);
    node[0].child = &node[1].schema;
    node[1].schema = (struct ArrowSchema){
        .format = node[1].format, .name = node[1].name, .release = release_schema, .private_data = export};
    export->references++;
}

/* Arrow's consumers trust offsets. The task could change those in the mapped file after R3, so this checks a copy. */
static bool copy_offsets(const supply_column_t *column, int32_t *copy) {
    int32_t before = 0;
    bool decreasing = false;
    for (uint64_t i = 0; i <= column->element_count; i++) {
        copy[i] = SHARED_READ(column->offsets[i]);
        decreasing |= copy[i] < before;
        before = copy[i];
    }
    return !decreasing && (size_t)before <= column->data_bytes;
}

static void fill_array(struct array_export *export, struct array_node *node, const supply_column_t *column,
                       uint32_t list_size, struct ArrowArray *array) {
    const bool is_list = list_size > 0;
    node[0].buffers[0] = column->validity;
    /* Of a column with offsets, use_copies() sets the second one. */
    node[0].buffers[1] = column->data;
    node[0].buffers[2] = column->data;
    *array = (struct ArrowArray){
        .length = column->element_count,
        .null_count = column->null_count,
        .n_buffers = is_list                   ? 1
                     : column->offsets != NULL ? 3
                                               : 2,
        .n_children = is_list ? 1 : 0,
        .buffers = node[0].buffers,
        .children = is_list ? &node[0].child : NULL,
        .release = release_array,
        .private_data = export,
    };
    export->references++;
    if (!is_list) return;
    node[1].buffers[1] = column->data;
    node[0].child = &node[1].array;
    node[1].array = (struct ArrowArray){.length = (int64_t)column->element_count * list_size,
                                        .n_buffers = 2,
                                        .buffers = node[1].buffers,
                                        .release = release_array,
                                        .private_data = export};
    export->references++;
}

static void export_schema(struct schema_export *export, const struct schema *from, size_t first, size_t count, bool all,
                          struct ArrowSchema *schema) {
    for (size_t i = 0; i < count; i++) {
        struct schema_node *node = &export->nodes[2 * i];
        export->columns[i] = &node->schema;
        fill_schema(export, node, &from->entries[first + i], all ? &node->schema : schema);
    }
    if (!all) return;
    export->references++;
    *schema = (struct ArrowSchema){.format = "+s",
                                   .name = "",
                                   .n_children = (int64_t)count,
                                   .children = export->columns,
                                   .release = release_schema,
                                   .private_data = export};
}

/* How many bytes of offsets or views are copied of that column. */
static size_t copied_bytes(const struct schema *schema, const struct block *block, size_t index) {
    const uint32_t elements = block->notification.element_count;
    switch (supply__schema_format(&schema->entries[index]).layout) {
        case FORMAT_VARIABLE:
            return (elements / 2 + (size_t)1) * 2 * sizeof(int32_t); /* the next copy is aligned to 8 bytes */
        case FORMAT_VIEWS:
            return arrow_views_bytes(elements, block->windows[index].count);
        default:
            return 0;
    }
}

/* Gives the array copies of the column's offsets or views. False: they have changed since they were checked. */
static bool use_copies(supply_column_t *column, uint8_t *copies, struct ArrowArray *array) {
    if (column->views != NULL) return arrow_views(column, copies, array);
    if (column->offsets == NULL) return true;
    if (!copy_offsets(column, (int32_t *)copies)) return false;
    array->buffers[1] = copies;
    return true;
}

/* SUPPLY_OK, or _CONTRACT. */
static supply_status_t export_array(struct array_export *export, supply_t *supply, const struct block *block,
                                    size_t first, size_t count, bool all, struct ArrowArray *array) {
    struct ArrowArray only = {0};
    for (size_t i = 0; i < count; i++) {
        supply_column_t column;
        const uint32_t index = (uint32_t)(first + i);
        supply_status_t status =
            supply__block_column(&supply->blocks, &supply->pair, block, index, &column, &supply->failure);
        if (status != SUPPLY_OK) return status;
        struct array_node *node = &export->nodes[2 * i];
        struct ArrowArray *filled = all ? &node->array : &only;
        export->columns[i] = &node->array;
        fill_array(export, node, &column, supply__schema_format(&supply->blocks.schema.entries[index]).list_size,
                   filled);
        if (!use_copies(&column, export->copies, filled)) return supply__fail_by_changed_block(supply);
        export->copies += copied_bytes(&supply->blocks.schema, block, index);
    }
    export->references += all;
    *array = all ? (struct ArrowArray){.length = block->notification.element_count,
                                       .n_buffers = 1,
                                       .n_children = (int64_t)count,
                                       .buffers = &export->no_validity,
                                       .children = export->columns,
                                       .release = release_array,
                                       .private_data = export}
                 : only;
    return SUPPLY_OK;
}

static supply_status_t fail(supply_t *supply, supply_status_t status, const char *text) {
    return supply__fail(&supply->failure, status, "supply_export_arrow: %s", text);
}

/* SUPPLY_OK if that block and column can be exported. */
static supply_status_t check(supply_t *supply, const supply_block_t *block, int index, bool with_array) {
    if (block == NULL && with_array) return fail(supply, SUPPLY_ERROR_ARGUMENT, "block must not be NULL");
    if (block != NULL && !supply__holds(supply, block->sequence))
        return fail(supply, SUPPLY_ERROR_ARGUMENT, "the block is not held: it has been released");
    if (index != SUPPLY_ALL_COLUMNS) return supply__schema_check_index(supply, index);
    return supply__schema_learn(supply);
}

/* The same of these columns together. */
static size_t all_copied_bytes(const struct schema *schema, const struct block *block, size_t first, size_t count) {
    size_t bytes = 0;
    for (size_t i = first; i < first + count; i++) bytes += copied_bytes(schema, block, i);
    return bytes;
}

supply_status_t supply_export_arrow(supply_t *supply, const supply_block_t *block, int index,
                                    struct ArrowSchema *schema, struct ArrowArray *array) {
    if (supply == NULL || !supply->is_open) return SUPPLY_ERROR_ARGUMENT;
    supply_status_t status = check(supply, block, index, array != NULL);
    if (status != SUPPLY_OK) return status;
    const struct schema *known = &supply->blocks.schema;
    const bool all = index == SUPPLY_ALL_COLUMNS;
    const size_t first = all ? 0 : (size_t)index, count = all ? known->count : 1;

    struct schema_export *of_schema = schema != NULL ? new_schema(count) : NULL;
    struct array_export *of_array = NULL;
    struct ArrowArray exported;
    if (array != NULL) {
        const struct block *held = supply__blocks_at(&supply->blocks, &supply->pair, block->sequence);
        of_array = new_array(count, all_copied_bytes(known, held, first, count));
        if (of_array != NULL) status = export_array(of_array, supply, held, first, count, all, &exported);
    }
    if ((schema != NULL && of_schema == NULL) || (array != NULL && of_array == NULL))
        status = fail(supply, SUPPLY_ERROR_MEMORY, "out of memory");
    if (status != SUPPLY_OK) {
        free(of_schema);
        free(of_array);
        return status;
    }
    if (schema != NULL) export_schema(of_schema, known, first, count, all, schema);
    if (array != NULL) {
        of_array->exports = supply->exports;
        of_array->sequence = block->sequence;
        supply__begin_export(supply, block->sequence);
        *array = exported;
    }
    return SUPPLY_OK;
}
