/** A result as a reader sees it, by PROTOCOL.md and independent of the library's code. */
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layout.h"

namespace supply_test {

/** The values of a column in all blocks. */
struct ResultColumn {
    std::string name, format, child_format;
    bool nullable = false;
    /** The bytes of each; bits: one byte of 0 or 1. With children a text: "[1, null]", "{name: a, x: 1}" */
    std::vector<std::optional<std::string>> values;
    uint64_t null_count = 0;
};

struct ResultFile {
    mapped_file_header header;
    std::vector<uint32_t> block_rows;
    std::vector<ResultColumn> columns;
};

/** Reads a sealed file. Throws std::runtime_error if it is not as the contract says. */
ResultFile read_result(const std::string &path);

} // namespace supply_test
