/** O1: the results that earlier runs of a pair left. */
#ifndef SUPPLY_OLD_RESULTS_H
#define SUPPLY_OLD_RESULTS_H

#include "options.h"

/** Removes them, sealed or not. SUPPLY_OK, or _IN_USE (a living process writes one), _CONFIG, _SYSTEM, _MEMORY. */
supply_status_t supply_old_results_remove(const struct settings *settings, struct failure *failure);

#endif
