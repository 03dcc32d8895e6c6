#include "values.h"

#include "pair.h"

namespace {

/* Of the buffers of a column of views: validity and views, then the windows, then their lengths. */
constexpr int64_t kFirstWindow = 2;

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
    if (step > PTRDIFF_MAX || step % unit != 0 || address % unit != 0) return 0;
    for (uint32_t i = 2; i < count; i++)
        if (reinterpret_cast<uintptr_t>(at(first + i).data) != address + i * step) return 0;
    return step;
}

void Values::gather(uint32_t first, uint32_t count, int64_t *ends, void *to, size_t to_bytes) const {
    supply_status_t status;
    {
        const nanobind::gil_scoped_release others_run;
        status = supply_gather(&column_, first, count, ends, to, to_bytes);
    }
    check(status);
}
