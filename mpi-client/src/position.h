/** A rank's position in its data. */
#ifndef SUPPLY_POSITION_H
#define SUPPLY_POSITION_H

#include "layout.h"
#include "supply.h"

/**
 * What the position of an exchange adds. The pair's position is the beginning of an earlier window, so that ranks can
 * resume although some are up to WINDOWS_BACK windows in front of others: all begin with the highest `first` of all
 * ranks, and each drops what it has consumed.
 */
struct exchange_position {
    bool is_set;
    uint32_t first;    /**< the window, numbered within the epoch, where the pair's position is */
    uint32_t next;     /**< state of the policy at the beginning of that window: see policy.h */
    uint32_t window;   /**< the last one of which the rank has consumed something; at least `first` */
    uint64_t elements; /**< that it has consumed of those that it receives in it; or WHOLE_WINDOW */
    uint64_t settings; /**< fingerprint of the exchange; not 0 */
};

/** The rank has consumed everything that it receives in the window. */
#define WHOLE_WINDOW UINT64_MAX

/** first is window − WINDOWS_BACK, or 0: one less than the slots of a rank bounds how far ranks can be apart. */
#define WINDOWS_BACK 2

struct position {
    uint32_t epoch;
    bool inside; /**< in the middle of the epoch; false: partition and element mean nothing */
    uint32_t partition;
    uint64_t element; /**< the next one of the partition */
    uint64_t plan;    /**< fingerprint of the plan; 0: not known */
    struct exchange_position exchange;
};

/** Reads the opaque bytes. False: they are no position. Exported for fillers. */
SUPPLY_API bool supply_position_unpack(const supply_position_t *packed, struct position *position);

/** Moves the position after that block, or after that end of an epoch. */
void supply_position_advance(struct position *position, const struct notification *block);

/** Asks the task, in the header, to begin there. */
void supply_position_request(const struct position *position, struct mapped_file_header *header);

#endif
