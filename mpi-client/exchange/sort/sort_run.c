#include "sort_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "block_layout.h"

supply_status_t exchange_runs_begin(struct sort_runs *runs, const char *folder, struct failure *failure) {
    if (!runs->is_open) runs->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (runs->fd < 0)
        return supply_fail(
            failure, SUPPLY_ERROR_SYSTEM,
            "a file for sorted elements cannot be made in %s: %m: set spill_folder to a folder on a local "
            "disk",
            folder);
    runs->is_open = true;
    runs->count++;
    return SUPPLY_OK;
}

/* A write past the limit would raise SIGXFSZ, which ends the program. */
static supply_status_t check_limit(size_t end, const char *folder, struct failure *failure) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur) return SUPPLY_OK;
    return supply_fail(failure, SUPPLY_ERROR_NO_SPACE,
                       "sorted elements cannot be written in %s: %zu bytes are needed so far, and this process may "
                       "write files of %llu: raise ulimit -f, or set memory_bytes larger",
                       folder, end, (unsigned long long)limit.rlim_cur);
}

static supply_status_t write_all(int fd, const uint8_t *from, size_t bytes, size_t offset, const char *folder,
                                 struct failure *failure) {
    while (bytes > 0) {
        const ssize_t written = pwrite(fd, from, bytes, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return supply_fail(failure,
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

supply_status_t exchange_runs_append(struct sort_runs *runs, const uint8_t *block, size_t bytes, uint32_t elements,
                                     const char *folder, struct failure *failure) {
    struct run_block *blocks = reallocarray(runs->blocks, runs->block_count + 1, sizeof *blocks);
    if (blocks == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    runs->blocks = blocks;
    supply_status_t status = check_limit(runs->bytes + bytes, folder, failure);
    if (status == SUPPLY_OK) status = write_all(runs->fd, block, bytes, runs->bytes, folder, failure);
    if (status != SUPPLY_OK) return status;
    blocks[runs->block_count++] =
        (struct run_block){.offset = runs->bytes, .bytes = bytes, .elements = elements, .run = runs->count - 1};
    runs->bytes += supply_aligned(bytes);
    return SUPPLY_OK;
}

/* The columns of a block that this process has written. */
static void find_columns(const uint8_t *block, uint32_t elements, const struct columns *columns,
                         supply_column_t *found) {
    const struct block_column *table = (const struct block_column *)(block + sizeof(struct block_header));
    for (uint32_t i = 0; i < columns->schema.count; i++) {
        const struct block_column *column = &table[i];
        found[i] = (supply_column_t){
            .name = columns->schema.entries[i].name,
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

static bool add_block(const struct sort_runs *runs, const struct run_block *block, const struct columns *columns,
                      struct gathered_window *window) {
    struct held_block *held = calloc(1, sizeof *held);
    supply_column_t *found = calloc(columns->schema.count, sizeof *found);
    if (held == NULL || found == NULL || !exchange_window_add(window, held, 0, block->elements)) {
        free(held);
        free(found);
        return false;
    }
    find_columns(runs->mapping + block->offset, block->elements, columns, found);
    held->columns = found;
    return true;
}

supply_status_t exchange_runs_load(struct sort_runs *runs, const struct columns *columns,
                                   struct gathered_window *window, struct failure *failure) {
    void *mapping = mmap(NULL, runs->bytes, PROT_READ, MAP_SHARED, runs->fd, 0);
    if (mapping == MAP_FAILED)
        return supply_fail(failure, SUPPLY_ERROR_SYSTEM, "%zu bytes of sorted elements cannot be mapped: %m",
                           runs->bytes);
    runs->mapping = mapping;
    for (uint32_t i = 0; i < runs->block_count; i++)
        if (!add_block(runs, &runs->blocks[i], columns, window))
            return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return SUPPLY_OK;
}

void exchange_runs_close(struct sort_runs *runs) {
    if (runs->mapping != NULL) munmap(runs->mapping, runs->bytes);
    if (runs->is_open) close(runs->fd);
    free(runs->blocks);
    *runs = (struct sort_runs){0};
}
