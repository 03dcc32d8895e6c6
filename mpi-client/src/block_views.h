/** A column of views: its values lie in foreign files, in windows that the block lists. */
#ifndef SUPPLY_BLOCK_VIEWS_H
#define SUPPLY_BLOCK_VIEWS_H

#include "foreign_files.h"

/** The windows of one column of one block, checked, in this process's own memory. */
struct block_windows {
    supply_window_t *list;
    uint32_t count;
    uint32_t capacity;
};

/** Where the windows and views of a column are. Both lie within the block. */
struct block_views {
    const struct window *windows;
    const struct view *views;
    uint32_t window_count;
    uint32_t element_count;
};

/**
 * The part of R3 for a column of views: each window lies in its file, each view in its window. SUPPLY_OK, or _CONTRACT,
 * _SYSTEM (a foreign file cannot be read), _MEMORY. Free windows->list.
 */
supply_status_t supply_block_views_check(struct block_windows *windows, const struct block_views *views,
                                         struct foreign_files *files, const struct mapped_file_header *header,
                                         struct failure *failure);

/** Whether the value stands in its view, and not in a window. */
static inline bool supply_view_is_inline(const supply_view_t *view) {
    return view->bytes >= 0 && view->bytes <= VIEW_INLINE_MAX;
}

/** The bytes of a view, which is a copy. False: it does not lie in its window. */
bool supply_view_find(const supply_view_t *view, const supply_window_t *windows, uint32_t count, const void **data);

#endif
