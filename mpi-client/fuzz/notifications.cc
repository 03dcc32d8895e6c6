// Steps of a task (steps.h) while a rank reads: notifications, blocks, schema and header.
#include <algorithm>
#include <cstring>

#include "fuzzed_pair.h"
#include "input.h"
#include "steps.h"

namespace supply_fuzz {
namespace {

/** Copies bytes (u8 count, bytes) to begin + offset, as far as they fit. */
void set(Input &input, uint8_t *begin, size_t size, size_t offset) {
    const size_t count = input.number<uint8_t>();
    offset = std::min(offset, size);
    input.copy(begin + offset, std::min(count, size - offset));
}

void mix(void *into, const notification &with) {
    auto *bytes = static_cast<uint8_t *>(into);
    const auto *other = reinterpret_cast<const uint8_t *>(&with);
    for (size_t i = 0; i < sizeof with; i++) bytes[i] ^= other[i];
}

void publish(FuzzedPair &pair, Input &input, uint64_t sequence) {
    notification right = {}, mixed = {};
    right.generation = pair.generation;
    right.kind = NOTIFICATION_BLOCK;
    right.sequence = sequence;
    right.offset = static_cast<uint64_t>(pair.slot(sequence) - pair.mapping());
    right.size = FuzzedPair::block_bytes;
    input.copy(&mixed, sizeof mixed);
    mix(&mixed, right);
    memcpy(pair.slot(sequence), &mixed, sizeof mixed);
    __atomic_store_n(&pair.header().published, sequence + 1, __ATOMIC_RELEASE);
    pair.send(&mixed, sizeof mixed);
}

void notify(FuzzedPair &pair, Input &input) {
    notification notification = {};
    input.copy(&notification, sizeof notification);
    notification.generation ^= pair.generation;
    pair.send(&notification, sizeof notification);
}

void send(FuzzedPair &pair, Input &input) {
    uint8_t bytes[UINT8_MAX];
    const size_t count = input.number<uint8_t>();
    memset(bytes, 0, sizeof bytes);
    input.copy(bytes, count);
    pair.send(bytes, count);
}

void run(Input input) {
    FuzzedPair pair;
    uint64_t sequence = 0;
    bool open = true;
    while (open && !input.is_empty()) switch (input.number<uint8_t>() % STEPS) {
            case SET_COLUMNS:
                __atomic_store_n(&pair.header().schema_columns, input.number<uint32_t>(), __ATOMIC_RELEASE);
                break;
            case SET_SCHEMA: {
                const size_t column = input.number<uint8_t>();
                const size_t offset = column * sizeof(schema_entry) + input.number<uint8_t>();
                set(input, pair.mapping() + SCHEMA_OFFSET, RING_OFFSET - SCHEMA_OFFSET, offset);
                break;
            }
            case SET_SLOT: {
                uint8_t *slot = pair.slot(input.number<uint8_t>());
                const size_t offset = input.number<uint16_t>();
                set(input, slot, FuzzedPair::block_bytes, offset);
                break;
            }
            case SET_HEADER: {
                const size_t offset = input.number<uint16_t>();
                set(input, pair.mapping(), SCHEMA_OFFSET,
                    (offsetof(mapped_file_header, published) + offset) % SCHEMA_OFFSET);
                break;
            }
            case SET_FILE: {
                uint8_t bytes[UINT8_MAX] = {};
                const size_t offset = input.number<uint32_t>(), count = input.number<uint8_t>();
                input.copy(bytes, count);
                pair.write_resident(offset, bytes, count);
                break;
            }
            case SET_WIDE: {
                uint8_t bytes[UINT8_MAX] = {};
                const size_t offset = input.number<uint16_t>(), count = input.number<uint8_t>();
                input.copy(bytes, count);
                FuzzedPair::write_after_ring(offset, bytes, count);
                break;
            }
            case PUBLISH:
                publish(pair, input, sequence++);
                break;
            case NOTIFY:
                notify(pair, input);
                break;
            case SEND:
                send(pair, input);
                break;
            case RECEIVE:
                open = pair.receive();
                break;
            case RELEASE:
                pair.release_oldest();
                break;
        }
    pair.read_held();
    for (int i = 0; open && i < 4; i++) open = pair.receive();
}

} // namespace
} // namespace supply_fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    supply_fuzz::run(supply_fuzz::Input(data, size));
    return 0;
}
