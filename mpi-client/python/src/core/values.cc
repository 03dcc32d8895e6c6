#include "values.h"

#include <cstddef>

#include "pair.h"

namespace {

/* Of the buffers of a column of views: validity and views, then the windows, then their lengths. */
constexpr int64_t kFirstWindow = 2;

/*
 * A strided tensor's storage spans what lies between its values, too, and torch.save(), deepcopy() and pin_memory()
 * copy all of it. Values on pages of their own in an LMDB leave less than a page of at most 64 KiB free.
 */
constexpr size_t kGapMax = 65536;

/* A value of at most that many bytes stands in its view. */
constexpr size_t kInlineMax = sizeof(supply_view_t) - offsetof(supply_view_t, start);

void check(supply_status_t status) {
    if (status != SUPPLY_OK) raise(status, "the column has no such values");
}

} // namespace

Values::Values(const supply_column_t &column, const ArrowArray &array) : column_(column) {
    if (column.offsets != nullptr) column_.offsets = static_cast<const int32_t *>(array.buffers[1]);
    if (column.views == nullptr) return;
    column_.views = static_cast<const supply_view_t *>(array.buffers[1]);
    const auto *lengths = static_cast<const int64_t *>(array.buffers[array.n_buffers - 1]);
    for (int64_t i = kFirstWindow; i < array.n_buffers - 1; i++)
        windows_.push_back({array.buffers[i], static_cast<size_t>(lengths[i - kFirstWindow])});
    column_.windows = windows_.data();
}

Values::Value Values::at(uint32_t index) const {
    const void *data;
    size_t bytes;
    check(supply_value(&column_, index, &data, &bytes));
    return {static_cast<const uint8_t *>(data), bytes};
}

size_t Values::step(uint32_t first, uint32_t count, size_t unit) const {
    const Value value = at(first);
    const auto address = reinterpret_cast<uintptr_t>(value.data);
    if (count == 1) return address % unit != 0 ? 0 : value.bytes != 0 ? value.bytes : unit;
    const uintptr_t step = reinterpret_cast<uintptr_t>(at(first + 1).data) - address;
    if (step > value.bytes + kGapMax || step % unit != 0 || address % unit != 0) return 0;
    for (uint32_t i = 1; i < count; i++)
        if (reinterpret_cast<uintptr_t>(at(first + i).data) != address + i * step || !is_in_window_of(first, first + i))
            return 0;
    return step;
}

bool Values::is_in_window_of(uint32_t first, uint32_t index) const {
    if (column_.views == nullptr) return true;
    const supply_view_t &one = column_.views[first], &other = column_.views[index];
    const bool is_inline = static_cast<size_t>(one.bytes) <= kInlineMax;
    return is_inline == (static_cast<size_t>(other.bytes) <= kInlineMax) && (is_inline || one.window == other.window);
}

void Values::gather(uint32_t first, uint32_t count, int64_t *ends, void *to, size_t to_bytes) const {
    supply_status_t status;
    {
        const nanobind::gil_scoped_release others_run;
        status = supply_gather(&column_, first, count, ends, to, to_bytes);
    }
    check(status);
}
