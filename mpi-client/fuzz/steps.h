/**
 * The input of the fuzzer `notifications`: steps of a task, each a byte that says which one, and its operands. What is
 * mixed by exclusive or is right where the input has zeros, so that most inputs get past the first check.
 */
#ifndef SUPPLY_FUZZ_STEPS_H
#define SUPPLY_FUZZ_STEPS_H

#include <cstdint>

namespace supply_fuzz {

enum Step : uint8_t {
    SET_COLUMNS, /**< u32 schema_columns */
    SET_SCHEMA,  /**< u8 column, u8 offset in its entry, u8 count, bytes */
    SET_SLOT,    /**< u8 slot, u16 offset, u8 count, bytes */
    SET_HEADER,  /**< u16 offset after `published`, u8 count, bytes */
    PUBLISH,     /**< 64 bytes, mixed into the right next notification; copied into its slot and published */
    NOTIFY,      /**< 64 bytes, mixed into the generation alone; sent and no more */
    SEND,        /**< u8 count, bytes */
    RECEIVE,     /**< nothing */
    RELEASE,     /**< nothing */
    STEPS,
};

} // namespace supply_fuzz

#endif
