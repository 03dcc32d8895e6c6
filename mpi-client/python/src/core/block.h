/** A block, and what is exported of it. Each holds the block: the task gets its space when all of them are gone. */
#ifndef SUPPLY_PYTHON_BLOCK_H
#define SUPPLY_PYTHON_BLOCK_H

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "pair.h"

/** One exported column: owns the memory that numpy and PyTorch look at. */
class Column {
  public:
    Column(Pair &pair, const supply_block_t &block, int index);
    ~Column();
    Column(const Column &) = delete;
    Column &operator=(const Column &) = delete;

    /** What an array of `shape` with values of `kind` and `bits`, `begin` bytes behind the data's start, looks at. */
    const void *values(uint8_t kind, uint8_t bits, const std::vector<size_t> &shape, size_t begin) const;

    uint64_t sequence;
    std::string name, format, child_format;
    uint32_t element_count, null_count;
    size_t data_bytes;
    const int32_t *offsets;

  private:
    const void *data_;
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
    nanobind::object arrow_schema() const;
    std::string position_behind(uint32_t elements) const { return pair_->position_behind(block_, elements); }
    const supply_block_t &fields() const { return block_; }

  private:
    std::shared_ptr<Pair> pair_;
    supply_block_t block_;
};

#endif
