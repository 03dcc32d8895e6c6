/**
 * The input of the fuzzer `notifications`: steps of a task. Each is a byte, which says which step, and its operands.
 * Some operands are combined with valid values by exclusive or: zeros give the valid value, so most inputs pass the
 * first check.
 */
#pragma once

#include <cstdint>

namespace supply_fuzz {

enum Step : uint8_t {
    SET_COLUMNS, /**< u32 schema_columns */
    SET_SCHEMA,  /**< u8 column, u8 offset in its entry, u8 count, bytes */
    SET_SLOT,    /**< u8 slot, u16 offset, u8 count, bytes */
    SET_HEADER,  /**< u16 offset from `published`, and after the header from its start; u8 count, bytes */
    SET_FILE,    /**< u32 offset in the resident file, u8 count, bytes */
    PUBLISH,     /**< 64 bytes, combined with the valid next notification; copied into its slot and published */
    NOTIFY,      /**< 64 bytes, only the generation is combined; sent, not published */
    SEND,        /**< u8 count, bytes */
    RECEIVE,     /**< nothing */
    RELEASE,     /**< nothing */
    SET_WIDE,    /**< u16 offset after the ring, u8 count, bytes */
    STEPS,
};

} // namespace supply_fuzz
