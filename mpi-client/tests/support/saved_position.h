/** The position of a rank, as text. */
#pragma once

#include "rank.h"

namespace supply_test {

/** After everything that the rank has released. */
inline std::string saved_position(const Handle &handle) {
    supply_position_t position = {};
    char text[SUPPLY_POSITION_TEXT_BYTES];
    EXPECT_STATUS(SUPPLY_OK, supply_position_save(handle.get(), &position), handle);
    EXPECT_STATUS(SUPPLY_OK, supply_position_to_text(&position, text, sizeof text), handle);
    return text;
}

} // namespace supply_test
