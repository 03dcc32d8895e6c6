/** A view of one column of a block. It holds the block: the task gets the slot when all views are gone. */
#ifndef SUPPLY_PYTHON_COLUMN_H
#define SUPPLY_PYTHON_COLUMN_H

#include <memory>
#include <vector>

#include "pair.h"
#include "values.h"

class Column {
  public:
    Column(Pair &pair, const supply_block_t &block, std::shared_ptr<const ColumnType> type);
    ~Column() { array_.release(&array_); }
    Column(const Column &) = delete;
    Column &operator=(const Column &) = delete;

    const std::shared_ptr<const ColumnType> type;
    const uint64_t sequence;
    uint32_t element_count, null_count;
    size_t data_bytes;
    const uint8_t *data;
    const uint8_t *validity; /**< NULL: every element has a value */
    const int32_t *offsets;  /**< a copy, which the task cannot change; NULL: fixed width */

    /** Of an array over a plain column. */
    std::vector<size_t> shape() const;
    /** Of a column of bytes, text or views. */
    const Values &values() const { return *values_; }

  private:
    ArrowArray array_;
    std::unique_ptr<const Values> values_;
    const References::Place place_;
};

#endif
