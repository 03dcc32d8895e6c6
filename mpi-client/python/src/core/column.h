/**
 * A view of one column of a block, or of the values within one. It holds the block: the task gets the slot when all
 * views are gone.
 */
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "pair.h"

/** Finds them by the copies of offsets and views in an Arrow array, which the task cannot change. */
class Values {
  public:
    struct Value {
        const uint8_t *data;
        size_t bytes;
    };

    /** array: the export of that column. It must outlive this. */
    Values(const supply_column_t &column, const ArrowArray &array);

    Value at(uint32_t index) const;
    /**
     * The distance in bytes between the values from element `first` on. 0: they do not lie at equal distances in one
     * window, or more than 64 KiB lie between them, or an array of numbers of `unit` bytes cannot begin at each. Of a
     * single value: its length, or `unit` if it is empty.
     */
    size_t step(uint32_t first, uint32_t count, size_t unit) const;
    /** As supply_gather(). Other Python threads run meanwhile. */
    void gather(uint32_t first, uint32_t count, int64_t *ends, void *to, size_t to_bytes) const;

  private:
    /* Whether one array can hold both values: no other file, and no hole, lies between two of one window. */
    bool is_in_window_of(uint32_t first, uint32_t index) const;

    supply_column_t column_;
    std::vector<supply_window_t> windows_;
};

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

/** PyTorch's tensor of a capsule of DLPack. */
nanobind::object tensor_of(const nanobind::object &capsule);
