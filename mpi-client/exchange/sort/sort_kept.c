/**
 * What a sorter keeps, in memory and in sorted runs; and how runs are merged. Runs lie in one file without a name,
 * which goes with the process. All of it is of one sorter, in the thread that uses the handle; its own file is trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "block/schema.h"
#include "sorter.h"

/* Begins a run; the first one creates the file in the folder. SUPPLY_OK, or _SYSTEM. */
static supply_status_t runs_begin(struct sort_runs *runs, const char *folder, struct failure *failure) {
    if (!runs->is_open) runs->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (runs->fd < 0)
        return supply__fail(
            failure, SUPPLY_ERROR_SYSTEM,
            "a file for sorted elements cannot be made in %s: %m: set spill_folder to a folder on a local "
            "disk",
            folder);
    runs->is_open = true;
    runs->count++;
    return SUPPLY_OK;
}

/* A write past the limit would raise SIGXFSZ, which ends the program. */
static supply_status_t kept_check_limit(size_t end, const char *folder, struct failure *failure) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_NO_SPACE,
                        "sorted elements cannot be written in %s: %zu bytes are needed so far, and this process may "
                        "write files of %llu: raise ulimit -f, or set memory_bytes larger",
                        folder, end, (unsigned long long)limit.rlim_cur);
}

static supply_status_t kept_write_all(int fd, const uint8_t *from, size_t bytes, size_t offset, const char *folder,
                                      struct failure *failure) {
    while (bytes > 0) {
        const ssize_t written = pwrite(fd, from, bytes, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return supply__fail(failure,
                                errno == ENOSPC || errno == EDQUOT ? SUPPLY_ERROR_NO_SPACE : SUPPLY_ERROR_SYSTEM,
                                "sorted elements cannot be written in %s (%zu bytes so far): %m: set spill_folder to a "
                                "folder with more space, or memory_bytes larger",
                                folder, offset);
        from += written;
        offset += (size_t)written;
        bytes -= (size_t)written;
    }
    return SUPPLY_OK;
}

/* Appends a block of exchange_slot_finish() to the last run. SUPPLY_OK, or _NO_SPACE, _SYSTEM, _MEMORY. */
static supply_status_t runs_append(struct sort_runs *runs, const uint8_t *block, size_t bytes, uint32_t elements,
                                   const char *folder, struct failure *failure) {
    struct run_block *blocks = reallocarray(runs->blocks, runs->block_count + 1, sizeof *blocks);
    if (blocks == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    runs->blocks = blocks;
    TRY(kept_check_limit(runs->bytes + bytes, folder, failure));
    TRY(kept_write_all(runs->fd, block, bytes, runs->bytes, folder, failure));
    blocks[runs->block_count++] =
        (struct run_block){.offset = runs->bytes, .bytes = bytes, .elements = elements, .run = runs->count - 1};
    runs->bytes += supply__aligned(bytes);
    return SUPPLY_OK;
}

/* The columns of a block that this process has written. */
static void kept_find_columns(const uint8_t *block, uint32_t elements, const struct columns *columns,
                              supply_column_t *found) {
    const struct block_column *table = (const struct block_column *)(block + sizeof(struct block_header));
    for (uint32_t i = 0; i < columns->schema.count; i++) {
        const struct block_column *column = &table[i];
        found[i] = (supply_column_t){
            .name = supply__schema_name(&columns->schema, i),
            .format = columns->schema.entries[i].format,
            .child_format = columns->schema.entries[i].child_format,
            .element_count = elements,
            .null_count = column->null_count,
            .validity = column->validity_bytes ? block + column->validity_offset : NULL,
            .offsets = column->offsets_bytes ? (const int32_t *)(block + column->offsets_offset) : NULL,
            .data = block + column->data_offset,
            .data_bytes = column->data_bytes,
        };
    }
}

static bool kept_add_block(const struct sort_runs *runs, const struct run_block *block, const struct columns *columns,
                           struct gathered_window *window) {
    struct held_block *held = calloc(1, sizeof *held);
    supply_column_t *found = calloc(columns->schema.count, sizeof *found);
    if (held == NULL || found == NULL || !exchange_window_add(window, held, 0, block->elements)) {
        free(held);
        free(found);
        return false;
    }
    kept_find_columns(runs->mapping + block->offset, block->elements, columns, found);
    held->columns = found;
    return true;
}

/* Maps the file, and adds the elements of all runs to the window, run after run. SUPPLY_OK, or _SYSTEM, _MEMORY. */
static supply_status_t runs_load(struct sort_runs *runs, const struct columns *columns, struct gathered_window *window,
                                 struct failure *failure) {
    void *mapping = mmap(NULL, runs->bytes, PROT_READ, MAP_SHARED, runs->fd, 0);
    if (mapping == MAP_FAILED)
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "%zu bytes of sorted elements cannot be mapped: %m",
                            runs->bytes);
    runs->mapping = mapping;
    for (uint32_t i = 0; i < runs->block_count; i++)
        if (!kept_add_block(runs, &runs->blocks[i], columns, window))
            return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return SUPPLY_OK;
}

/* Unmaps and removes the file. */
static void runs_close(struct sort_runs *runs) {
    if (runs->mapping != NULL) munmap(runs->mapping, runs->bytes);
    if (runs->is_open) close(runs->fd);
    free(runs->blocks);
    *runs = (struct sort_runs){0};
}

static void kept_read_key(const struct merge *merge, struct sequence *sequence) {
    const uint32_t element = sequence->order ? sequence->order[sequence->at] : sequence->at;
    exchange_read_key(merge->window, merge->by, element, &sequence->key);
}

/* Of equal elements those of the earlier sequence come first. The sequences lie in one array. */
static bool kept_is_before(const struct sequence *one, const struct sequence *other) {
    const int order = exchange_key_compare(&one->key, &other->key);
    return order != 0 ? order < 0 : one < other;
}

static void kept_sift_down(struct merge *merge, uint32_t at) {
    struct sequence **heap = merge->heap;
    for (;;) {
        uint32_t smallest = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < merge->count; child++)
            if (kept_is_before(heap[child], heap[smallest])) smallest = child;
        if (smallest == at) return;
        struct sequence *const moved = heap[at];
        heap[at] = heap[smallest];
        heap[smallest] = moved;
        at = smallest;
    }
}

/* Begins with `count` sequences, which stay in use, as the window and `by`. False: out of memory. */
static bool merge_begin(struct merge *merge, const struct gathered_window *window, const struct sort_column *by,
                        struct sequence *sequences, uint32_t count) {
    *merge =
        (struct merge){.window = window, .by = by, .heap = (struct sequence **)calloc(count + 1, sizeof *merge->heap)};
    if (merge->heap == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        if (sequences[i].at < sequences[i].end) merge->heap[merge->count++] = &sequences[i];
    /* One sequence needs no keys. */
    for (uint32_t i = 0; i < merge->count && merge->count > 1; i++) kept_read_key(merge, merge->heap[i]);
    for (uint32_t i = merge->count / 2; i-- > 0;) kept_sift_down(merge, i);
    return true;
}

static void merge_free(struct merge *merge) {
    free((void *)merge->heap);
    *merge = (struct merge){0};
}

void exchange_merge_pop(struct merge *merge) {
    struct sequence *const top = merge->heap[0];
    if (++top->at == top->end) {
        merge->heap[0] = merge->heap[--merge->count];
    } else if (merge->count > 1) {
        kept_read_key(merge, top);
    }
    kept_sift_down(merge, 0);
}

/* Of blocks, more is kept than their elements' bytes: padding, offsets, and what sorting needs. */
static size_t kept_bytes_of(const struct held_block *held) {
    return held->block.bytes + held->packed_bytes + (size_t)held->block.element_count * SORT_BYTES_OF_ELEMENT;
}

static void kept_free_blocks(struct sorter *sorter) {
    for (uint32_t i = 0; i < sorter->window.piece_count; i++)
        exchange_free_held(sorter->window.pieces[i].held, NULL, sorter->columns.schema.count);
    exchange_window_clear(&sorter->window);
    sorter->kept_bytes = 0;
}

static void kept_end_order(struct sorter *sorter) {
    merge_free(&sorter->merge);
    free(sorter->order);
    free(sorter->sequences);
    sorter->order = NULL;
    sorter->sequences = NULL;
}

/* The window's elements as one sorted sequence. */
static supply_status_t kept_begin_order(struct sorter *sorter, struct failure *failure) {
    sorter->sequences = calloc(1, sizeof *sorter->sequences);
    const bool has_window = exchange_window_complete(&sorter->window);
    if (has_window) sorter->order = exchange_sort_window(&sorter->window, &sorter->by);
    const bool has_order = has_window && (sorter->order != NULL || sorter->window.elements == 0);
    if (sorter->sequences == NULL || !has_order)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY,
                            "%s: out of memory to sort %u elements: set memory_bytes smaller", sorter->inspected.name,
                            sorter->window.elements);
    sorter->sequences[0] = (struct sequence){.order = sorter->order, .end = sorter->window.elements};
    if (merge_begin(&sorter->merge, &sorter->window, &sorter->by, sorter->sequences, 1)) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
}

static supply_status_t kept_append_sorted(struct sorter *sorter, const struct slot *slot, struct failure *failure) {
    while (sorter->merge.count > 0) {
        uint32_t elements;
        size_t bytes;
        TRY(exchange_take_sorted(sorter, slot, &elements, &bytes, failure));
        TRY(runs_append(&sorter->runs, slot->address, bytes, elements, sorter->options.folder, failure));
    }
    return SUPPLY_OK;
}

static supply_status_t kept_write_run(struct sorter *sorter, struct failure *failure) {
    const size_t slot_bytes = exchange_slot_bytes(sorter->columns.whole.count, sorter->options.block_bytes);
    uint8_t *memory = aligned_alloc(BUFFER_ALIGNMENT, slot_bytes);
    if (memory == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    /* The gaps between columns reach the file, too. */
    memset(memory, 0, slot_bytes);
    supply_status_t status = runs_begin(&sorter->runs, sorter->options.folder, failure);
    if (status == SUPPLY_OK) status = kept_begin_order(sorter, failure);
    if (status == SUPPLY_OK) status = kept_append_sorted(sorter, &(struct slot){memory, slot_bytes}, failure);
    free(memory);
    kept_end_order(sorter);
    kept_free_blocks(sorter);
    return status;
}

static supply_status_t kept_check_count(const struct sorter *sorter, const supply_block_t *block,
                                        struct failure *failure) {
    if (sorter->kept_elements + block->element_count <= UINT32_MAX) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                        "%s: more than %u elements of an epoch reach this rank, which it cannot sort: use more ranks",
                        sorter->inspected.name, UINT32_MAX);
}

supply_status_t exchange_keep(struct sorter *sorter, const supply_block_t *block, struct failure *failure) {
    const uint32_t columns = sorter->columns.schema.count;
    supply_status_t status = kept_check_count(sorter, block, failure);
    if (status != SUPPLY_OK) return status;
    struct held_block *held = exchange_hold(sorter->inner, block, &sorter->columns, failure);
    if (held == NULL) return failure->status;
    status = exchange_copy_held(held, sorter->inner, columns, failure);
    if (status == SUPPLY_OK && !exchange_window_add(&sorter->window, held, 0, block->element_count))
        status = supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    if (status != SUPPLY_OK) {
        exchange_free_held(held, sorter->inner, columns);
        return status;
    }
    sorter->kept_bytes += kept_bytes_of(held);
    sorter->kept_elements += block->element_count;
    sorter->epoch = block->epoch;
    return sorter->kept_bytes > sorter->options.memory_bytes ? kept_write_run(sorter, failure) : SUPPLY_OK;
}

/* Each run is a sequence of the window of all runs. */
static void kept_find_sequences(struct sorter *sorter) {
    for (uint32_t i = 0, at = 0; i < sorter->runs.block_count; i++) {
        const struct run_block *block = &sorter->runs.blocks[i];
        struct sequence *sequence = &sorter->sequences[block->run];
        if (sequence->end == 0) sequence->at = at;
        at += block->elements;
        sequence->end = at;
    }
}

static supply_status_t kept_load_runs(struct sorter *sorter, struct failure *failure) {
    sorter->sequences = calloc(sorter->runs.count, sizeof *sorter->sequences);
    if (sorter->sequences == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
    TRY(runs_load(&sorter->runs, &sorter->columns, &sorter->window, failure));
    kept_find_sequences(sorter);
    if (exchange_window_complete(&sorter->window) &&
        merge_begin(&sorter->merge, &sorter->window, &sorter->by, sorter->sequences, sorter->runs.count))
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", sorter->inspected.name);
}

supply_status_t exchange_sort_kept(struct sorter *sorter, struct failure *failure) {
    if (sorter->runs.count == 0) return kept_begin_order(sorter, failure);
    if (sorter->window.elements > 0) TRY(kept_write_run(sorter, failure));
    return kept_load_runs(sorter, failure);
}

void exchange_drop_kept(struct sorter *sorter) {
    kept_end_order(sorter);
    kept_free_blocks(sorter);
    runs_close(&sorter->runs);
    sorter->kept_elements = 0;
}
