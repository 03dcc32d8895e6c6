/** A file that is not the rank's, to which blocks refer: opened, checked and mapped read-only. */
#ifndef SUPPLY_FOREIGN_FILE_H
#define SUPPLY_FOREIGN_FILE_H

#include <stdbool.h>

#include "failure.h"
#include "groups.h"
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
extern const struct foreign_use supply_foreign_values, supply_foreign_blocks;

struct foreign_file_mapping {
    const struct foreign_use *use;
    struct foreign_file entry; /**< a copy, which the task cannot change */
    int fd;
    bool has_lease; /**< the kernel delays whoever opens the file for writing, or cuts it */
    const uint8_t *address;
};

/**
 * Opens the file of that entry for that use. `group` may use the pair, too, or NO_GROUP. SUPPLY_OK, or _CONTRACT (the
 * entry is wrong), _SYSTEM: the file cannot be read here (errno), or is not the one of the entry (ESTALE), is open for
 * writing (EBUSY), or is none that the group may read (EACCES). On failure nothing is left.
 */
supply_status_t supply_foreign_file_open(struct foreign_file_mapping *file, const struct foreign_file *entry,
                                         const struct foreign_use *use, gid_t group, struct failure *failure);

/** SUPPLY_OK: nobody has written to the file since then. Else _SYSTEM: ESTALE, EBUSY. */
supply_status_t supply_foreign_file_check(const struct foreign_file_mapping *file, struct failure *failure);

/** Lets writers continue, even if a forked child still has the descriptor. */
void supply_foreign_file_drop_lease(struct foreign_file_mapping *file);

/**
 * Closes this process's descriptor. The kernel drops the lease when no process has a copy of it. The mapping stays.
 */
void supply_foreign_file_close(struct foreign_file_mapping *file);

#endif
