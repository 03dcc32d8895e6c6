/**
 * What all ranks of an exchange must have alike: its columns, with the buffers in which their values travel, and its
 * checked options. Fingerprints compare them.
 */
#pragma once

#include <stdbool.h>

#include "api/filler.h"
#include "block/schema.h"
#include "supply_exchange_options.h"

/** A buffer of one column in transfer: one alltoallv. */
struct wire_buffer {
    uint32_t column;
    enum wire_kind {
        WIRE_VALIDITY, /**< of a nullable column: a byte for each element, 1: valid */
        WIRE_LENGTHS,  /**< of values of any length: int32 */
        WIRE_DATA,     /**< the values; of bits a byte for each */
    } kind;
    uint32_t variable; /**< of a column of any length: its number among those */
};

struct column_plan {
    struct format format; /**< in the pair: FORMAT_VIEWS for "vz"; FORMAT_VARIABLE of a column with children */
    bool is_nullable;
};

struct columns {
    struct schema schema; /**< the columns without their children, with "vz" as "z"; count 0: not known yet */
    struct schema whole;  /**< with their children */
    struct column_plan *plans;
    struct wire_buffer *buffers;
    uint32_t buffer_count;
    uint32_t variable_count; /**< columns of values of any length */
    size_t fixed_bytes;      /**< of an element in transfer, without its values of any length */
    uint64_t fingerprint;    /**< 0: not known yet */
    bool is_of_pair;         /**< false: they are of another rank, or not known yet */
};

/** Whether its values have any length. */
bool exchange_is_variable(const struct column_plan *plan);

/**
 * Learns the columns by which the pair checks its blocks, unless they are known, or the pair does not know them yet.
 * The task can write into the mapped file's schema at any time, so that it is no source. SUPPLY_OK, or a failure, also
 * if they are not those that another rank has sent.
 */
supply_status_t exchange_columns_learn(struct columns *columns, supply_t *pair, const char *name,
                                       struct failure *failure);

/** Takes over these columns, with the texts after the entries. SUPPLY_OK, or a failure. */
supply_status_t exchange_columns_set(struct columns *columns, const struct schema_entry *entries, uint32_t count,
                                     uint32_t text_bytes, const char *name, struct failure *failure);

/** Bytes of that buffer in transfer: of `elements` elements, with `value_bytes` bytes of values of any length. */
size_t exchange_wire_bytes(const struct columns *columns, const struct wire_buffer *buffer, uint64_t elements,
                           const uint64_t *value_bytes);

/** Writes the columns as text, for a message. */
void exchange_columns_text(const struct columns *columns, char *text, size_t text_bytes);

void exchange_columns_free(struct columns *columns);

/* The checked options of an exchange. */

struct exchange_settings {
    supply_exchange_policy_t policy; /**< AS_SUPPLIED: the pair's header is not known yet */
    uint32_t fraction;               /**< in EXCHANGE_FRACTION_UNIT */
    uint64_t seed;
    bool has_seed; /**< the program has set it, and the fraction */
    bool has_fraction;
    char *column; /**< of HASH and RANGE; else NULL */
    bool nulls_together;
    size_t window_bytes;
    size_t memory_bytes; /**< of RANGE */
    char *spill_folder;  /**< of RANGE; else NULL */
    bool copies;         /**< ranks may copy their elements into this rank's memory, and this one into theirs */
};

/** Whether the policy sends elements by the value of a column. */
static inline bool exchange_has_key(const struct exchange_settings *settings) {
    return settings->policy == SUPPLY_EXCHANGE_HASH || settings->policy == SUPPLY_EXCHANGE_RANGE;
}

/** Checks the options, which may be NULL. SUPPLY_OK, or _ARGUMENT, _MEMORY. Free with exchange_settings_free(). */
supply_status_t exchange_settings(struct exchange_settings *settings, const supply_exchange_options_t *given,
                                  const struct filler_pair *pair, struct failure *failure);

/** Fills in what Spark says in the header, which is stored by now. SUPPLY_OK, or _ARGUMENT. */
supply_status_t exchange_settings_resolve(struct exchange_settings *settings, const struct filler_pair *pair,
                                          struct failure *failure);

/** Of all that must be the same on all ranks, and in a run that resumes. Not 0. */
uint64_t exchange_settings_fingerprint(const struct exchange_settings *settings, int ranks);

/** Writes the settings as text, for a message. */
void exchange_settings_text(const struct exchange_settings *settings, char *text, size_t text_bytes);

void exchange_settings_free(struct exchange_settings *settings);
