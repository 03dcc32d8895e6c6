// Sizes of the config files and options.
#include <cstdint>
#include <string>

#include "fuzzed_pair.h"

extern "C" {
#include "files/config_files.h"
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string text(reinterpret_cast<const char *>(data), size);
    const uint64_t bytes = supply__config_size(text.c_str());
    if (bytes > INT64_MAX) supply_fuzz::found("a size that is too large");
    if (bytes != 0 && supply__config_size(std::to_string(bytes).c_str()) != bytes)
        supply_fuzz::found("a size that changes when it is written in bytes");
    return 0;
}
