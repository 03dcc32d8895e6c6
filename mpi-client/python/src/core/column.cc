#include "column.h"

#include <cstddef>
#include <utility>

#include "pair.h"

namespace nb = nanobind;

namespace {

bool is_valid(const uint8_t *bits, size_t index) { return bits == nullptr || (bits[index / 8] >> index % 8 & 1) != 0; }

size_t count_nulls(const std::vector<uint8_t> &bits, size_t count) {
    size_t nulls = 0;
    for (size_t i = 0; i < count; i++) nulls += !is_valid(bits.data(), i);
    return nulls;
}

/* The innermost values of fixed lists. */
const ArrowArray *leaf(const ArrowArray *array, size_t lists) {
    for (size_t i = 0; i < lists; i++) array = array->children[0];
    return array;
}

} // namespace

Column::Column(Pair &pair, const supply_block_t &block, std::shared_ptr<const ColumnType> column_type)
    : type(std::move(column_type)),
      export_(std::make_shared<Export>(pair, block.sequence, std::shared_ptr<const std::string>(type, &type->name))),
      array_(&export_->array) {
    pair.check(supply_export_arrow(pair.handle(), &block, type->index, nullptr, &export_->array));
    read();
}

Column::Column(std::shared_ptr<const ColumnType> type, std::shared_ptr<Export> of_column, const ArrowArray &array)
    : type(std::move(type)), export_(std::move(of_column)), array_(&array) {
    read();
}

void Column::read() {
    element_count = static_cast<uint32_t>(array_->length);
    null_count = static_cast<uint32_t>(array_->null_count);
    validity = null_count != 0 ? static_cast<const uint8_t *>(array_->buffers[0]) : nullptr;
    const std::string &format = type->format;
    const bool is_text = format == "u" || format == "z", is_views = format == "vz";
    offsets = is_text || format == "+l" || format == "+m" ? static_cast<const int32_t *>(array_->buffers[1]) : nullptr;
    const ArrowArray *values = leaf(array_, type->widths.size());
    data = values->n_buffers > 1 ? static_cast<const uint8_t *>(values->buffers[is_text ? 2 : 1]) : nullptr;
    data_bytes = is_text ? static_cast<size_t>(offsets[element_count]) : (static_cast<size_t>(values->length) + 7) / 8;
    if (!is_text && !is_views) return;
    supply_column_t column = {};
    column.element_count = element_count;
    column.offsets = offsets;
    column.data = data;
    column.data_bytes = data_bytes;
    if (is_views) {
        column.views = static_cast<const supply_view_t *>(array_->buffers[1]);
        column.window_count = static_cast<uint32_t>(array_->n_buffers - 3);
    }
    values_ = std::make_unique<const Values>(column, *array_);
}

std::unique_ptr<Column> Column::child(size_t index) const {
    if (index >= type->children.size()) throw nanobind::index_error("the column has no such child");
    std::unique_ptr<Column> child(new Column(type->children[index], export_, *array_->children[index]));
    if (validity == nullptr) return child;
    if (type->format == "+s")
        child->hide_within_struct(*this);
    else if (child->validity != nullptr)
        child->fill_within_lists(*this);
    return child;
}

void Column::hide_within_struct(const Column &parent) {
    std::vector<uint8_t> bits = validity_bits();
    for (size_t i = 0; i < bits.size(); i++) bits[i] &= parent.validity[i];
    set_validity(std::move(bits));
}

void Column::fill_within_lists(const Column &parent) {
    std::vector<uint8_t> bits = validity_bits();
    const size_t width = parent.type->widths.empty() ? 0 : parent.type->widths[0];
    for (size_t i = 0; i < parent.element_count; i++) {
        if (is_valid(parent.validity, i)) continue;
        const size_t begin = width != 0 ? i * width : parent.offsets[i];
        const size_t end = width != 0 ? begin + width : parent.offsets[i + 1];
        for (size_t j = begin; j < end; j++) bits[j / 8] |= static_cast<uint8_t>(1 << j % 8);
    }
    set_validity(std::move(bits));
}

std::vector<uint8_t> Column::validity_bits() const {
    const size_t bytes = (element_count + size_t{7}) / 8;
    return validity != nullptr ? std::vector<uint8_t>(validity, validity + bytes) : std::vector<uint8_t>(bytes, 0xff);
}

void Column::set_validity(std::vector<uint8_t> bits) {
    own_validity_ = std::move(bits);
    null_count = static_cast<uint32_t>(count_nulls(own_validity_, element_count));
    validity = null_count != 0 ? own_validity_.data() : nullptr;
}

size_t Column::nulls_within() const {
    if (type->widths.empty() || type->children.empty()) return 0;
    const std::unique_ptr<Column> values = child(0);
    return values->null_count + values->nulls_within();
}

std::vector<size_t> Column::shape() const {
    std::vector<size_t> shape = {element_count};
    shape.insert(shape.end(), type->widths.begin(), type->widths.end());
    return shape;
}

/* torch.from_dlpack() asks in Python what it was given, and then calls the other one. */
nb::object tensor_of(const nb::object &capsule) {
    static nb::handle from_dlpack;
    if (!from_dlpack.is_valid()) {
        const nb::object torch = nb::module_::import_("torch");
        from_dlpack = nb::getattr(torch.attr("_C"), "_from_dlpack", torch.attr("from_dlpack")).release();
    }
    return from_dlpack(capsule);
}

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
