/** A block. It occupies its slot of the ring as long as it lives, and as long as a view of it does. */
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "column.h"
#include "pair.h"

class Block {
  public:
    Block(std::shared_ptr<Pair> pair, const supply_block_t &block) : pair_(std::move(pair)), block_(block) {
        place_.emplace(pair_->references(), References::Entry{block.sequence, nullptr});
    }
    ~Block() { release(); }
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;

    std::unique_ptr<Column> column(const std::string &name) const;
    std::vector<std::string> names() const;
    /** Two capsules, "arrow_schema" and "arrow_array". */
    std::pair<nanobind::object, nanobind::object> arrow() const;
    nanobind::object arrow_schema() const { return pair_->arrow_schema(); }
    std::string position_after(uint32_t elements) const { return pair_->position_after(block_, elements); }
    const supply_block_t &fields() const { return block_; }
    Pair &pair() const { return *pair_; }
    /** Views keep the slot. After it, only the fields and the position are there. */
    void release() noexcept {
        if (!place_) return;
        place_.reset();
        pair_->release(block_);
    }

  private:
    const std::shared_ptr<Pair> pair_;
    const supply_block_t block_;
    std::optional<References::Place> place_;
};

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
