// A whole mapped file, like the golden ones, also the rank's own fields, and the notifications that are copied in its
// blocks.
#include <algorithm>
#include <cstring>

#include "fuzzed_pair.h"

using supply_fuzz::FuzzedPair;

namespace {

/** Copies the part [begin, end) of the input, as far as the input goes. */
void copy(FuzzedPair &pair, const uint8_t *data, size_t size, size_t begin, size_t end) {
    if (begin < size) memcpy(pair.mapping() + begin, data + begin, std::min(size, end) - begin);
}

/** Reads a notification, and replaces the generation of a golden file by this pair's. */
notification notification_in(FuzzedPair &pair, uint64_t slot, uint64_t golden_generation) {
    notification notification;
    memcpy(&notification, pair.slot(slot), sizeof notification);
    notification.generation ^= golden_generation ^ pair.generation;
    memcpy(pair.slot(slot), &notification, sizeof notification);
    return notification;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzedPair pair;
    uint64_t generation = 0;
    const size_t generation_offset = offsetof(mapped_file_header, generation);
    if (size >= generation_offset + sizeof generation) memcpy(&generation, data + generation_offset, sizeof generation);
    copy(pair, data, size, 0, FOREIGN_FILES_OFFSET);
    copy(pair, data, size, SCHEMA_OFFSET, FuzzedPair::file_bytes);
    if (size > FuzzedPair::file_bytes)
        FuzzedPair::write_after_ring(0, data + FuzzedPair::file_bytes, size - FuzzedPair::file_bytes);
    for (uint64_t slot = 0; slot < FuzzedPair::block_count; slot++) {
        const notification notification = notification_in(pair, slot, generation);
        pair.send(&notification, sizeof notification);
    }
    /* In a golden file: two blocks, FAILURE, and nothing after it. */
    for (int i = 0; i < 4 && pair.receive(); i++) pair.release_oldest();
    return 0;
}
