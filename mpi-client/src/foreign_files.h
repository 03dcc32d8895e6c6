/** The foreign files of a pair: each is opened when a block first refers to it. */
#ifndef SUPPLY_FOREIGN_FILES_H
#define SUPPLY_FOREIGN_FILES_H

#include "exports.h"
#include "foreign_file.h"

struct foreign_files {
    struct foreign_file_mapping files[FOREIGN_FILES_MAX];
    uint32_t opened; /**< bit i: files[i] is open */
    gid_t group;     /**< may use the pair, too; or NO_GROUP */
};

/** Foreign file `number` of that mapped file, from 1; opened for that use if it is not. SUPPLY_OK, or _CONTRACT,
 * _SYSTEM. */
supply_status_t supply_foreign_files_find(struct foreign_files *files, const struct mapped_file_header *header,
                                          uint32_t number, const struct foreign_use *use,
                                          const struct foreign_file_mapping **found, struct failure *failure);

/** SUPPLY_OK: nobody has written to any of them. Else _SYSTEM. */
supply_status_t supply_foreign_files_check(const struct foreign_files *files, struct failure *failure);

/** In a forked child: closes its descriptors. The mappings stay, and the parent's lease. */
void supply_foreign_files_abandon(struct foreign_files *files);

/** Drops the leases, closes the descriptors, and adds the mappings, which stay. */
void supply_foreign_files_close(struct foreign_files *files, struct exported_mappings *mappings);

#endif
