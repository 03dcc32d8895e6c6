/** The values of a column of bytes, text or views. */
#pragma once

#include <cstdint>
#include <vector>

#include "supply_arrow.h"

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
