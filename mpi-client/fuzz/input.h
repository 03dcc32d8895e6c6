/** The input of a fuzzer, read as numbers and bytes. */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace supply_fuzz {

class Input {
  public:
    Input(const uint8_t *data, size_t size) : data_(data), left_(size) {}

    bool is_empty() const { return left_ == 0; }

    /** The next number. Missing bytes are zeros. */
    template <typename Number>
    Number number() {
        Number number = 0;
        copy(&number, sizeof number);
        return number;
    }

    void copy(void *to, size_t count) {
        count = std::min(count, left_);
        memcpy(to, data_, count);
        data_ += count;
        left_ -= count;
    }

  private:
    const uint8_t *data_;
    size_t left_;
};

} // namespace supply_fuzz
