/** A block and its exported columns. Each of them holds the block: the task gets the slot when all are gone. */
#ifndef SUPPLY_PYTHON_BLOCK_H
#define SUPPLY_PYTHON_BLOCK_H

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include "pair.h"

/** One exported column: owns the memory that arrays and tensors use. */
class Column {
  public:
    Column(Pair &pair, const supply_block_t &block, int index);
    ~Column() { array_.release(&array_); }
    Column(const Column &) = delete;
    Column &operator=(const Column &) = delete;

    uint64_t sequence;
    std::string name, format, child_format;
    uint32_t element_count, null_count;
    size_t data_bytes;
    const uint8_t *data;
    const uint8_t *validity; /**< NULL: every element has a value */
    const int32_t *offsets;  /**< a copy, which the task cannot change; NULL: fixed width */

  private:
    ArrowArray array_;
};

class Block {
  public:
    Block(std::shared_ptr<Pair> pair, const supply_block_t &block) : pair_(std::move(pair)), block_(block) {}
    ~Block() { pair_->release(block_); }
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;

    std::unique_ptr<Column> column(const std::string &name) const;
    std::vector<std::string> names() const;
    /** Two capsules, "arrow_schema" and "arrow_array". */
    std::pair<nanobind::object, nanobind::object> arrow() const;
    nanobind::object arrow_schema() const { return pair_->arrow_schema(); }
    std::string position_after(uint32_t elements) const { return pair_->position_after(block_, elements); }
    const supply_block_t &fields() const { return block_; }

  private:
    std::shared_ptr<Pair> pair_;
    supply_block_t block_;
};

#endif
