/**
 * Blocks through the Arrow C Data Interface. Values stay in the ring; offsets and views are copied, because consumers
 * trust them. Any thread may release an array. The handle's lock covers what that changes.
 */
#include <errno.h>
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

static bool arrow_copy_views(const supply_column_t *column, supply_view_t *copy) {
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
    if (!arrow_copy_views(column, views)) return false;
    buffers[0] = column->validity;
    buffers[1] = views;
    trim_windows(column, views, buffers + 2, lengths);
    buffers[2 + column->window_count] = lengths;
    array->buffers = buffers;
    array->n_buffers = (int64_t)column->window_count + BUFFERS_BESIDE_WINDOWS;
    return true;
}

/*
 * A schema is one piece of memory, an array another: a node for each entry, and for the numbers of a list without a
 * child. Each piece is freed when the last of its structures is released.
 */

struct schema_node {
    struct ArrowSchema schema;
    char format[sizeof((struct schema_entry *)0)->format];
};

struct schema_export {
    uint32_t references;           /* structures that are not released */
    struct ArrowSchema **children; /* the next free places of a list of children */
    struct schema_node *next;      /* the next free node */
    char *names;                   /* where the next name begins */
    struct schema_node nodes[];
};

struct array_node {
    struct ArrowArray array;
    const void *buffers[3];
};

struct array_export {
    uint32_t references;
    struct exports *exports;
    uint64_t sequence;
    const void *no_validity;
    struct ArrowArray **children;
    uint8_t *copies; /* of offsets and views: where the next column's begins */
    struct array_node *next;
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

/* The entries `first` to `end - 1`: columns with their children. */
struct range {
    uint32_t first, end;
};

static size_t nodes_of(const struct range *range) { return 2 * (size_t)(range->end - range->first); }

/* With room for the names. */
static struct schema_export *new_schema(const struct schema *from, const struct range *range) {
    const size_t count = nodes_of(range), bytes = sizeof(struct schema_export) + count * sizeof(struct schema_node);
    size_t name_bytes = 0;
    for (uint32_t i = range->first; i < range->end; i++) name_bytes += strlen(supply__schema_name(from, i)) + 1;
    struct schema_export *export = calloc(1, bytes + count * sizeof *export->children + name_bytes);
    if (export == NULL) return NULL;
    export->children = (struct ArrowSchema **)((uint8_t *)export + bytes);
    export->names = (char *)(export->children + count);
    export->next = export->nodes;
    return export;
}

static struct array_export *new_array(const struct range *range, size_t copied_bytes) {
    const size_t count = nodes_of(range), bytes = sizeof(struct array_export) + count * sizeof(struct array_node);
    struct array_export *export = calloc(1, bytes + count * sizeof *export->children + copied_bytes);
    if (export == NULL) return NULL;
    export->children = (struct ArrowArray **)((uint8_t *)export + bytes);
    export->copies = (uint8_t *)(export->children + count);
    export->next = export->nodes;
    return export;
}

/* The numbers of a list without a child. */
static bool has_numbers(const struct schema *schema, uint32_t index) {
    return schema->formats[index].layout == FORMAT_FIXED && schema->formats[index].list_size > 0;
}

/* How many children Arrow has for an entry. */
static int64_t children_of(const struct schema *schema, uint32_t index) {
    return has_numbers(schema, index) ? 1 : schema->entries[index].children;
}

/* The place for the list of children, of which there may be none. */
#define TAKE_CHILDREN(export, count) (((export)->children += (count)) - (count))

static void fill_number_schema(struct schema_export *export, const char *format, struct ArrowSchema **place) {
    struct schema_node *node = export->next++;
    snprintf(node->format, sizeof node->format, "%s", format);
    *place = &node->schema;
    node->schema =
        (struct ArrowSchema){.format = node->format, .name = "item", .release = release_schema, .private_data = export};
    export->references++;
}

/* `schema`: of the node, or the caller's. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static void fill_schema(struct schema_export *export, struct schema_node *node, const struct schema *from,
                        uint32_t index, struct ArrowSchema *schema) {
    const struct schema_entry *entry = &from->entries[index];
    const int64_t count = children_of(from, index);
    const char *name = export->names;
    export->names = stpcpy(export->names, supply__schema_name(from, index)) + 1;
    memcpy(node->format, entry->format, sizeof entry->format);
    *schema = (struct ArrowSchema){
        .format = node->format,
        .name = name,
        .flags = entry->flags & COLUMN_NULLABLE ? ARROW_FLAG_NULLABLE : 0,
        .n_children = count,
        .children = TAKE_CHILDREN(export, count),
        .release = release_schema,
        .private_data = export,
    };
    export->references++;
    if (has_numbers(from, index)) fill_number_schema(export, entry->child_format, schema->children);
    for (uint32_t i = 0, child = index + 1; i < entry->children; child = from->ends[child], i++) {
        struct schema_node *below = export->next++;
        schema->children[i] = &below->schema;
        fill_schema(export, below, from, child, &below->schema);
    }
}

static void export_schema(struct schema_export *export, const struct schema *from, const struct range *range, bool all,
                          struct ArrowSchema *schema) {
    struct ArrowSchema **columns = export->children;
    int64_t count = 0;
    if (!all) {
        fill_schema(export, export->next++, from, range->first, schema);
        return;
    }
    export->children += from->column_count;
    for (uint32_t i = range->first; i < range->end; i = from->ends[i]) {
        struct schema_node *node = export->next++;
        columns[count++] = &node->schema;
        fill_schema(export, node, from, i, &node->schema);
    }
    export->references++;
    *schema = (struct ArrowSchema){.format = "+s",
                                   .name = "",
                                   .n_children = count,
                                   .children = columns,
                                   .release = release_schema,
                                   .private_data = export};
}

/* How many bytes of offsets or views are copied of that entry. */
static size_t copied_bytes(const struct schema *schema, const struct block *block, uint32_t index) {
    const uint32_t elements = block->elements[index];
    if (supply__has_offsets(&schema->formats[index]))
        return (elements / 2 + (size_t)1) * 2 * sizeof(int32_t); /* the next copy is aligned to 8 bytes */
    if (schema->formats[index].layout == FORMAT_VIEWS) return arrow_views_bytes(elements, block->windows[index].count);
    return 0;
}

static int64_t arrow_buffers_of(const struct format *format) {
    switch (format->layout) {
        case FORMAT_STRUCT:
        case FORMAT_FIXED_LIST:
            return 1;
        case FORMAT_VARIABLE:
            return 3;
        default:
            return format->list_size > 0 ? 1 : 2;
    }
}

static void fill_numbers(struct array_export *export, const supply_column_t *column, uint32_t list_size,
                         struct ArrowArray **place) {
    struct array_node *node = export->next++;
    node->buffers[1] = column->data;
    *place = &node->array;
    node->array = (struct ArrowArray){.length = (int64_t)column->element_count * list_size,
                                      .n_buffers = 2,
                                      .buffers = node->buffers,
                                      .release = release_array,
                                      .private_data = export};
    export->references++;
}

/* SUPPLY_OK, or _CONTRACT. `array`: of the node, or the caller's. */
// NOLINTNEXTLINE(misc-no-recursion): at most NESTING_MAX deep
static supply_status_t fill_array(struct array_export *export, struct array_node *node, supply_t *supply,
                                  const struct block *block, uint32_t index, struct ArrowArray *array) {
    const struct schema *schema = &supply->blocks.schema;
    const struct format *format = &schema->formats[index];
    supply_column_t column;
    TRY(supply__block_column(&supply->blocks, &supply->pair, block->notification.sequence, index, &column,
                             &supply->failure));
    const int64_t count = children_of(schema, index);
    node->buffers[0] = column.validity;
    node->buffers[1] = node->buffers[2] = column.data;
    *array = (struct ArrowArray){
        .length = column.element_count,
        .null_count = column.null_count,
        .n_buffers = arrow_buffers_of(format),
        .n_children = count,
        .buffers = node->buffers,
        .children = TAKE_CHILDREN(export, count),
        .release = release_array,
        .private_data = export,
    };
    export->references++;
    uint8_t *copies = export->copies;
    export->copies += copied_bytes(schema, block, index);
    if (supply__has_offsets(format)) {
        const size_t most = format->layout == FORMAT_LIST ? block->elements[index + 1] : column.data_bytes;
        uint32_t last;
        /* Consumers trust offsets, and the task could change those in the mapped file after R3. */
        if (!supply__offsets_copy(column.offsets, column.element_count, (int32_t *)copies, &last) || last > most)
            return supply__fail_by_changed_block(supply);
        node->buffers[1] = copies;
    }
    if (column.views != NULL && !arrow_views(&column, copies, array)) return supply__fail_by_changed_block(supply);
    if (has_numbers(schema, index)) fill_numbers(export, &column, format->list_size, array->children);
    for (uint32_t i = 0, child = index + 1; i < schema->entries[index].children; child = schema->ends[child], i++) {
        struct array_node *below = export->next++;
        array->children[i] = &below->array;
        TRY(fill_array(export, below, supply, block, child, &below->array));
    }
    return SUPPLY_OK;
}

/* SUPPLY_OK, or _CONTRACT. */
static supply_status_t export_array(struct array_export *export, supply_t *supply, const struct block *block,
                                    const struct range *range, bool all, struct ArrowArray *array) {
    const struct schema *schema = &supply->blocks.schema;
    struct ArrowArray **columns = export->children;
    int64_t count = 0;
    if (!all) return fill_array(export, export->next++, supply, block, range->first, array);
    export->children += schema->column_count;
    for (uint32_t i = range->first; i < range->end; i = schema->ends[i]) {
        struct array_node *node = export->next++;
        columns[count++] = &node->array;
        TRY(fill_array(export, node, supply, block, i, &node->array));
    }
    export->references++;
    *array = (struct ArrowArray){.length = block->notification.element_count,
                                 .n_buffers = 1,
                                 .n_children = count,
                                 .buffers = &export->no_validity,
                                 .children = columns,
                                 .release = release_array,
                                 .private_data = export};
    return SUPPLY_OK;
}

/* The same of these columns together. */
static size_t all_copied_bytes(const struct schema *schema, const struct block *block, const struct range *range) {
    size_t bytes = 0;
    for (uint32_t i = range->first; i < range->end; i++) bytes += copied_bytes(schema, block, i);
    return bytes;
}

supply_status_t supply_export_arrow(supply_t *supply, const supply_block_t *block, int index,
                                    struct ArrowSchema *schema, struct ArrowArray *array) {
    TRY(supply__check_open(supply));
    if (block != NULL || array != NULL) TRY(supply__check_held(supply, "supply_export_arrow", block, true));
    supply_status_t status =
        index == SUPPLY_ALL_COLUMNS ? supply__schema_learn(supply) : supply__schema_check_index(supply, index);
    if (status != SUPPLY_OK) return status;
    const struct schema *known = &supply->blocks.schema;
    const bool all = index == SUPPLY_ALL_COLUMNS;
    const uint32_t first = all ? 0 : known->columns[index];
    const struct range range = {first, all ? known->count : known->ends[first]};

    struct schema_export *of_schema = schema != NULL ? new_schema(known, &range) : NULL;
    struct array_export *of_array = NULL;
    struct ArrowArray exported;
    if (array != NULL) {
        const struct block *held = supply__blocks_at(&supply->blocks, &supply->pair, block->sequence);
        of_array = new_array(&range, all_copied_bytes(known, held, &range));
        if (of_array != NULL) status = export_array(of_array, supply, held, &range, all, &exported);
    }
    if ((schema != NULL && of_schema == NULL) || (array != NULL && of_array == NULL))
        status = supply__fail(&supply->failure, SUPPLY_ERROR_MEMORY, "supply_export_arrow: out of memory");
    if (status != SUPPLY_OK) {
        free(of_schema);
        free(of_array);
        return status;
    }
    if (schema != NULL) export_schema(of_schema, known, &range, all, schema);
    if (array != NULL) {
        of_array->exports = supply->exports;
        of_array->sequence = block->sequence;
        supply__begin_export(supply, block->sequence);
        *array = exported;
    }
    return SUPPLY_OK;
}

/*
 * The rest of an epoch through the Arrow C Stream Interface. The thread that uses the handle uses the stream; the
 * stream outlives a handle that is closed, and then fails.
 */

struct stream {
    struct exports *exports;
    bool has_block; /* received, and not returned by get_next yet */
    bool has_ended;
    supply_block_t block;
    char error[sizeof((struct failure *)0)->text];
};

static int error_number(const supply_t *supply, supply_status_t status) {
    switch (status) {
        case SUPPLY_ERROR_TIMEOUT:
            return ETIMEDOUT;
        case SUPPLY_ERROR_MEMORY:
            return ENOMEM;
        case SUPPLY_INTERRUPTED:
            return EINTR;
        case SUPPLY_ERROR_ARGUMENT:
            return EINVAL;
        case SUPPLY_ERROR_SYSTEM:
            return supply_error_errno(supply) != 0 ? supply_error_errno(supply) : EIO;
        default:
            return EIO;
    }
}

/* The errno of that status, 0 for SUPPLY_OK, and its text for get_last_error. */
static int stream_finish(struct stream *stream, supply_status_t status) {
    const supply_t *supply = stream->exports->supply;
    const char *text = status == SUPPLY_INTERRUPTED ? "interrupted" : supply_error(supply);
    if (status == SUPPLY_OK) return 0;
    supply__copy_line(stream->error, sizeof stream->error, text, sizeof stream->error);
    return error_number(supply, status);
}

static int fail_by_close(struct stream *stream) {
    static const char text[] = "the handle of this stream is closed";
    supply__copy_line(stream->error, sizeof stream->error, text, sizeof text);
    return EINVAL;
}

/* Receives the next block, unless there is one or the epoch has ended. */
static supply_status_t stream_receive(struct stream *stream) {
    if (stream->has_block || stream->has_ended) return SUPPLY_OK;
    const supply_status_t status = supply_next(stream->exports->supply, &stream->block);
    stream->has_block = status == SUPPLY_OK;
    stream->has_ended = status == SUPPLY_END_OF_EPOCH || status == SUPPLY_END_OF_DATA;
    return stream->has_ended ? SUPPLY_OK : status;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *schema) {
    struct stream *stream = self->private_data;
    supply_t *supply = stream->exports->supply;
    if (supply == NULL) return fail_by_close(stream);
    supply_status_t status = supply_export_arrow(supply, NULL, SUPPLY_ALL_COLUMNS, schema, NULL);
    if (status == SUPPLY_ERROR_NO_SCHEMA && (status = stream_receive(stream)) == SUPPLY_OK)
        status = supply_export_arrow(supply, NULL, SUPPLY_ALL_COLUMNS, schema, NULL);
    return stream_finish(stream, status);
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *array) {
    struct stream *stream = self->private_data;
    supply_t *supply = stream->exports->supply;
    if (supply == NULL) return fail_by_close(stream);
    supply_status_t status = stream_receive(stream);
    if (status != SUPPLY_OK) return stream_finish(stream, status);
    array->release = NULL; /* the end, unless there is a block */
    if (!stream->has_block) return 0;
    status = supply_export_arrow(supply, &stream->block, SUPPLY_ALL_COLUMNS, NULL, array);
    if (status != SUPPLY_OK) return stream_finish(stream, status);
    stream->has_block = false;
    return stream_finish(stream, supply_release(supply, &stream->block));
}

static const char *get_last_error(struct ArrowArrayStream *self) {
    const struct stream *stream = self->private_data;
    return stream->error[0] != '\0' ? stream->error : NULL;
}

static void stream_release(struct ArrowArrayStream *self) {
    struct stream *stream = self->private_data;
    struct exports *exports = stream->exports;
    if (stream->has_block && *exports->is_mine && exports->supply != NULL)
        supply_release(exports->supply, &stream->block);
    supply__exports_drop(exports);
    free(stream);
    self->release = NULL;
}

supply_status_t supply_export_stream(supply_t *supply, struct ArrowArrayStream *to) {
    TRY(supply__check_open(supply));
    if (to == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_export_stream: stream must not be NULL");
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_MEMORY, "supply_export_stream: out of memory");
    stream->exports = supply->exports;
    supply__exports_add(stream->exports);
    *to = (struct ArrowArrayStream){.get_schema = get_schema,
                                    .get_next = get_next,
                                    .get_last_error = get_last_error,
                                    .release = stream_release,
                                    .private_data = stream};
    return SUPPLY_OK;
}
