/** The checked options of an exchange. */
#ifndef SUPPLY_EXCHANGE_SETTINGS_H
#define SUPPLY_EXCHANGE_SETTINGS_H

#include "columns.h"
#include "filler.h"
#include "supply_exchange_options.h"

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

#endif
