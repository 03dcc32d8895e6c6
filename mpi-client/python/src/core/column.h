/**
 * A view of one column of a block, or of the values within one. It holds the block: the task gets the slot when all
 * views are gone.
 */
#pragma once

#include <nanobind/ndarray.h>

#include <memory>
#include <vector>

#include "pair.h"
#include "values.h"

class Column {
  public:
    Column(Pair &pair, const supply_block_t &block, std::shared_ptr<const ColumnType> type);
    Column(const Column &) = delete;
    Column &operator=(const Column &) = delete;

    const std::shared_ptr<const ColumnType> type;
    uint64_t sequence() const { return export_->sequence; }
    uint32_t element_count, null_count;
    size_t data_bytes; /**< of bits, bytes and text */
    const uint8_t *data;
    /**
     * NULL: every element has a value. A field of a null struct has none. A value within a null list is none that
     * anybody misses, so it counts as one.
     */
    const uint8_t *validity;
    const int32_t *offsets; /**< a copy, which the task cannot change; NULL: fixed width */

    std::unique_ptr<Column> child(size_t index) const;
    /** Nulls among the values of fixed lists, at all depths. */
    size_t nulls_within() const;
    /** Of an array over a plain column. */
    std::vector<size_t> shape() const;
    /** Of a column of bytes, text or views. */
    const Values &values() const { return *values_; }

  private:
    /** What Arrow has of the column, with its children. */
    struct Export {
        Export(Pair &pair, uint64_t sequence, std::shared_ptr<const std::string> name)
            : sequence(sequence), place(pair.references(), {sequence, std::move(name)}) {}
        ~Export() {
            if (array.release != nullptr) array.release(&array);
        }
        Export(const Export &) = delete;
        Export &operator=(const Export &) = delete;

        const uint64_t sequence;
        const References::Place place;
        ArrowArray array = {};
    };

    Column(std::shared_ptr<const ColumnType> type, std::shared_ptr<Export> of_column, const ArrowArray &array);
    void read();
    void hide_within_struct(const Column &parent);
    void fill_within_lists(const Column &parent);
    std::vector<uint8_t> validity_bits() const;
    void set_validity(std::vector<uint8_t> bits);

    const std::shared_ptr<Export> export_;
    const ArrowArray *array_;
    std::vector<uint8_t> own_validity_; /**< of a child whose parent has nulls */
    std::unique_ptr<const Values> values_;
};

/** PyTorch's tensor over values of a column. */
nanobind::object tensor(const nanobind::ndarray<nanobind::no_framework, nanobind::ro> &values);
