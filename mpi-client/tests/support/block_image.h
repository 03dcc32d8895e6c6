/** Blocks as a task writes them, by PROTOCOL.md and independent of the library's code. */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout.h"

namespace supply_test {

struct Element {
    std::string key;
    int32_t label = 0, channels = 0, height = 0, width = 0;
    bool encoded = false;
    std::string data;
};

/** The values of one column of a block. */
struct Column {
    std::string name, format, child_format;
    std::string values;           /**< the data buffer */
    std::vector<int32_t> offsets; /**< empty: fixed width */
    std::string validity;         /**< empty: no bitmap */
    uint32_t null_count = 0;
    uint32_t children = 0; /**< how many of the next columns are within this one */

    static Column fixed(std::string name, std::string format, std::string values);
    static Column list(std::string name, std::string format, std::string child_format, std::string values);
    static Column variable(std::string name, std::string format, const std::vector<std::string> &values);
    static Column bits(std::string name, const std::vector<bool> &values);
    static Column int32(std::string name, const std::vector<int32_t> &values);
    /** A list, a map or a struct: offsets are empty unless the format has them. */
    static Column parent(std::string name, std::string format, uint32_t children, std::vector<int32_t> offsets = {});
    static Column views(std::string name, const std::vector<window> &windows, const std::vector<view> &views);
};

/** The bytes of a block, without the notification at its start. */
class BlockImage {
  public:
    BlockImage(const std::vector<Column> &columns, uint32_t element_count);

    uint32_t element_count;
    std::vector<uint8_t> bytes;

    block_header &header() { return *reinterpret_cast<block_header *>(bytes.data()); }
    block_column &column(size_t index) {
        return reinterpret_cast<block_column *>(bytes.data() + sizeof(block_header))[index];
    }
    int32_t *offsets(size_t index) { return reinterpret_cast<int32_t *>(bytes.data() + column(index).offsets_offset); }
    window *windows(size_t index) { return reinterpret_cast<window *>(offsets(index)); }
    view *views(size_t index) { return reinterpret_cast<view *>(bytes.data() + column(index).data_offset); }

  private:
    uint32_t append(const void *buffer, size_t size);
};

std::vector<Column> datum_columns(const std::vector<Element> &elements);
BlockImage datum_block(const std::vector<Element> &elements);

/** The schema of the columns. */
std::vector<schema_entry> schema_of(const std::vector<Column> &columns);

/** The texts after it: the names that are too long for their entries. */
std::string texts_of(const std::vector<Column> &columns);

/** An element. Each number gives a different one. */
Element numbered_element(uint64_t number, size_t data_bytes = 100);

} // namespace supply_test
