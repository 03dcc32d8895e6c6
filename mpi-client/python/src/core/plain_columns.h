/** Columns of numbers of a block, as tensors, all at once: each call from Python would take longer than a tensor. */
#ifndef SUPPLY_PYTHON_PLAIN_COLUMNS_H
#define SUPPLY_PYTHON_PLAIN_COLUMNS_H

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "block.h"

/** Columns, each of one number or one fixed list of numbers for an element. */
class PlainColumns {
  public:
    /** Null: one of the columns has other values, or there is no such column. */
    static std::unique_ptr<PlainColumns> of(const Block &block, const std::vector<std::string> &names);

    /** A list of tensors over the block, which they hold. None: a column has nulls in this block. */
    nanobind::object tensors(const Block &block) const;

  private:
    std::vector<std::shared_ptr<const ColumnType>> types_;
};

#endif
