/** A rank's position in its data. */
#pragma once

#include "layout.h"
#include "supply.h"

/** What the position of an exchange adds: the pair's position is the beginning of that window. */
struct exchange_position {
    bool is_set;
    uint32_t window;   /**< number within the epoch */
    uint64_t elements; /**< that the rank has consumed of those that it receives in it; or WHOLE_WINDOW */
    uint64_t settings; /**< fingerprint of the exchange; not 0 */
};

/** The rank has consumed everything that it receives in the window. */
#define WHOLE_WINDOW UINT64_MAX

struct position {
    uint32_t epoch;
    bool inside; /**< in the middle of the epoch; false: partition and element mean nothing */
    uint32_t partition;
    uint64_t element; /**< the next one of the partition */
    uint64_t plan;    /**< fingerprint of the plan; 0: not known */
    struct exchange_position exchange;
};

/** Writes the opaque bytes. */
void supply__position_pack(const struct position *position, supply_position_t *packed);

/** Reads the opaque bytes. False: they are no position. */
bool supply__position_unpack(const supply_position_t *packed, struct position *position);

/** Moves the position after that block, or after that end of an epoch. */
void supply__position_advance(struct position *position, const struct notification *block);

/** Asks the task, in the header, to begin there. */
void supply__position_request(const struct position *position, struct mapped_file_header *header);
