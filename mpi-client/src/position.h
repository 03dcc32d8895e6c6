/** Where a rank stands in its data, and where it wants to begin. */
#ifndef SUPPLY_POSITION_H
#define SUPPLY_POSITION_H

#include "layout.h"
#include "supply.h"

struct position {
    uint32_t epoch;
    bool inside; /**< in the middle of the epoch: partition and element count */
    uint32_t partition;
    uint64_t element; /**< the next one of the partition */
    uint64_t plan;    /**< fingerprint of the plan; 0: not known */
};

/** From the opaque bytes; false if they are no position. */
bool supply_position_unpack(const supply_position_t *packed, struct position *position);

/** The position behind that block, or that end. */
void supply_position_pass(struct position *position, const struct notification *block);

/** Asks the task to begin there. */
void supply_position_request(const struct position *position, struct mapped_file_header *header);

#endif
