#include "block_views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(supply_view_t) == sizeof(struct view), "supply_view_t is the contract's view");

static supply_status_t grow(struct block_windows *windows, uint32_t count, struct failure *failure) {
    if (count <= windows->capacity) return SUPPLY_OK;
    supply_window_t *list = realloc(windows->list, count * sizeof *list);
    if (list == NULL) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    windows->list = list;
    windows->capacity = count;
    return SUPPLY_OK;
}

static supply_status_t add_window(struct block_windows *windows, const struct window *shared,
                                  struct foreign_files *files, const struct mapped_file_header *header,
                                  struct failure *failure) {
    struct window window;
    memcpy(&window, shared, sizeof window);
    const struct foreign_file_mapping *file;
    supply_status_t status =
        supply_foreign_files_find(files, header, window.file, &supply_foreign_values, &file, failure);
    if (status != SUPPLY_OK) return status;
    const uint64_t file_bytes = file->entry.file_bytes;
    if (window.window_bytes > WINDOW_BYTES_MAX)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "window.window_bytes is %" PRIu64 ", must be at most %d",
                           window.window_bytes, WINDOW_BYTES_MAX);
    if (window.offset > file_bytes || window.window_bytes > file_bytes - window.offset)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                           "window.offset is %" PRIu64 ", must be with its %" PRIu64 " bytes within the %" PRIu64
                           " bytes of %s",
                           window.offset, window.window_bytes, file_bytes, file->entry.path);
    windows->list[windows->count++] =
        (supply_window_t){.address = file->address + window.offset, .bytes = window.window_bytes};
    return SUPPLY_OK;
}

bool supply_view_find(const supply_view_t *view, const supply_window_t *windows, uint32_t count, const void **data) {
    if (view->bytes < 0 || (uint32_t)view->window >= count || view->offset < 0) return false;
    const supply_window_t *window = &windows[view->window];
    if ((uint64_t)view->offset + (uint64_t)view->bytes > window->bytes) return false;
    *data = (const uint8_t *)window->address + view->offset;
    return true;
}

supply_status_t supply_block_views_check(struct block_windows *windows, const struct block_views *views,
                                         struct foreign_files *files, const struct mapped_file_header *header,
                                         struct failure *failure) {
    windows->count = 0;
    supply_status_t status = grow(windows, views->window_count, failure);
    for (uint32_t i = 0; i < views->window_count && status == SUPPLY_OK; i++)
        status = add_window(windows, &views->windows[i], files, header, failure);
    const void *data;
    for (uint32_t i = 0; i < views->element_count && status == SUPPLY_OK; i++) {
        supply_view_t view;
        memcpy(&view, &views->views[i], sizeof view);
        if (!supply_view_is_inline(&view) && !supply_view_find(&view, windows->list, windows->count, &data))
            status = supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                                 "the view of element %u has %d bytes at %d of window %d, must be within one of the %u "
                                 "windows",
                                 i, view.bytes, view.offset, view.window, windows->count);
    }
    return status;
}
