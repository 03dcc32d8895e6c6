/** A rank that only counts what it gets. */
#pragma once

#include "rank.h"

namespace supply_test {

/** Opens a pair and takes every element until that status. Returns how many came, or the error's text. */
inline std::string consume_until(supply_status_t last, const supply_options_t &options) {
    supply_t *supply;
    if (supply_open(&supply, &options) != SUPPLY_OK) return supply_error(supply);
    supply_datum_t datum;
    supply_status_t status;
    int elements = 0;
    while ((status = supply_next_datum(supply, &datum)) >= 0 && status != last) elements += status == SUPPLY_OK;
    const std::string text = status < 0 ? supply_error(supply) : std::to_string(elements) + " elements";
    supply_close(supply);
    return text;
}

} // namespace supply_test
