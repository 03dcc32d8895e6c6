// Positions, as text and as what a program has stored of one.
#include <cstdint>
#include <cstring>
#include <string>

#include "fuzzed_pair.h"

using supply_fuzz::found;

namespace {

void write_and_read(const supply_position_t &position) {
    char text[SUPPLY_POSITION_TEXT_BYTES];
    memset(text, 0x7f, sizeof text);
    supply_position_to_text(&position, text, sizeof text);
    if (memchr(text, '\0', sizeof text) == nullptr) found("the text of a position is not ended");
    supply_position_t again;
    if (supply_position_from_text(&again, text) == SUPPLY_OK && memcmp(&again, &position, sizeof again) != 0)
        found("a position that is another one when it is read again");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string text(reinterpret_cast<const char *>(data), size);
    supply_position_t position = {};
    if (supply_position_from_text(&position, text.c_str()) == SUPPLY_OK) write_and_read(position);
    if (size == sizeof position) {
        memcpy(&position, data, size);
        write_and_read(position);
    }
    return 0;
}
