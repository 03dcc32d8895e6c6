/** Rows with a column of each layout, of which the number tells every value. */
#pragma once

#include <string>
#include <vector>

#include "block_image.h"
#include "supply.h"

namespace supply_test {

/** Columns of a row. */
enum class Shape {
    fixed,  /**< id */
    every,  /**< id, small, flag, maybe, list, key, text */
    nested, /**< id; tokens, point and counts, with children */
    wide    /**< id; a column with a long name, and 399 others */
};

/** The key of a row: eight different ones, of different lengths. */
std::string key_of(int64_t id);

/** A block of these rows. */
std::vector<Column> row_columns(Shape shape, const std::vector<int64_t> &ids);
BlockImage row_block(Shape shape, const std::vector<int64_t> &ids);
std::vector<schema_entry> row_schema(Shape shape);
std::string row_texts(Shape shape);

/** The numbers of the rows of a held block. Checks every value of each of them. */
std::vector<int64_t> read_rows(supply_t *supply, const supply_block_t &block, Shape shape);

} // namespace supply_test
