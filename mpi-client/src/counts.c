/** supply_counts(): what a whole epoch has for this rank. */
#include <inttypes.h>

#include "handle.h"

static supply_status_t read_counts(supply_t *supply, supply_counts_t *counts) {
    const struct mapped_file_header *header = supply_mapped_header(&supply->pair.mapped_file);
    const uint32_t known = __atomic_load_n(&header->counts_known, __ATOMIC_ACQUIRE);
    if (known == 0) return SUPPLY_AGAIN;
    const supply_counts_t read = {.epoch_elements = __atomic_load_n(&header->epoch_elements, __ATOMIC_RELAXED),
                                  .epoch_steps = __atomic_load_n(&header->epoch_steps, __ATOMIC_RELAXED)};
    if (known > 1)
        return supply_fail(&supply->failure, SUPPLY_ERROR_CONTRACT, "%s: counts_known is %" PRIu32, supply->pair.name,
                           known);
    if (read.epoch_steps > read.epoch_elements)
        return supply_fail(&supply->failure, SUPPLY_ERROR_CONTRACT,
                           "%s: epoch_steps is %" PRIu64 ", above epoch_elements, which is %" PRIu64, supply->pair.name,
                           read.epoch_steps, read.epoch_elements);
    *counts = read;
    return SUPPLY_OK;
}

supply_status_t supply_counts_sized(supply_t *supply, supply_counts_t *counts, size_t struct_bytes) {
    if (supply == NULL || !supply->is_open) return SUPPLY_ERROR_ARGUMENT;
    if (counts == NULL)
        return supply_fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_counts: counts must not be NULL");
    supply_counts_t known = {0};
    const supply_status_t status = read_counts(supply, &known);
    supply_copy_sized(counts, struct_bytes, &known, sizeof known);
    return status;
}
