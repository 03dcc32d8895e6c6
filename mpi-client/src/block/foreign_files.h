/**
 * Foreign files: files that are not the rank's, to which blocks refer. Each is opened, checked and mapped read-only
 * when a block first refers to it; columns of views have their values in windows of them.
 */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "files/folder.h"
#include "layout.h"

/** What the blocks of a pair have in a foreign file. */
struct foreign_use {
    const char *field;  /**< of the contract, which has the number of the file */
    const char *role;   /**< the file in a message, after its path */
    const char *place;  /**< of a file that cannot be read: what to check */
    const char *group;  /**< of a file that the pair's group may not read: what to do */
    const char *remedy; /**< the other way to supply the same values */
    double closing;     /**< seconds for which Spark may still have a file open for writing that it has closed */
};

/** Values in place, and the blocks of resident files. */
extern const struct foreign_use supply__foreign_values, supply__foreign_blocks;

struct foreign_file_mapping {
    const struct foreign_use *use;
    struct foreign_file entry; /**< a copy, which the task cannot change */
    int fd;
    bool has_lease; /**< the kernel delays whoever opens the file for writing, or cuts it */
    const uint8_t *address;
};

/** Mappings that outlive the handle: of the mapped file, and of the foreign files. */
struct exported_mappings {
    struct {
        void *address;
        size_t bytes;
    } list[1 + FOREIGN_FILES_MAX];
    uint32_t count;
};

struct foreign_files {
    struct foreign_file_mapping files[FOREIGN_FILES_MAX];
    uint32_t opened; /**< bit i: files[i] is open */
    gid_t group;     /**< may use the pair, too; or NO_GROUP */
};

/** Foreign file `number` of that mapped file, from 1; opened for that use if it is not. SUPPLY_OK, or _CONTRACT,
 * _SYSTEM. */
supply_status_t supply__foreign_files_find(struct foreign_files *files, const struct mapped_file_header *header,
                                           uint32_t number, const struct foreign_use *use,
                                           const struct foreign_file_mapping **found, struct failure *failure);

/** SUPPLY_OK: nobody has written to any of them. Else _SYSTEM. */
supply_status_t supply__foreign_files_check(const struct foreign_files *files, struct failure *failure);

/** In a forked child: closes its descriptors. The mappings stay, and the parent's lease. */
void supply__foreign_files_abandon(struct foreign_files *files);

/** Drops the leases, closes the descriptors, and adds the mappings, which stay. */
void supply__foreign_files_close(struct foreign_files *files, struct exported_mappings *mappings);

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
supply_status_t supply__block_views_check(struct block_windows *windows, const struct block_views *views,
                                          struct foreign_files *files, const struct mapped_file_header *header,
                                          struct failure *failure);

/** Whether the value stands in its view, and not in a window. */
static inline bool supply__view_is_inline(const supply_view_t *view) {
    return view->bytes >= 0 && view->bytes <= VIEW_INLINE_MAX;
}

/** The bytes of a view, which is a copy. False: it does not lie in its window. */
bool supply__view_find(const supply_view_t *view, const supply_window_t *windows, uint32_t count, const void **data);
