#include "block.h"

#include <nanobind/stl/pair.h>

namespace nb = nanobind;

namespace {

/* A capsule for a consumer of the Arrow PyCapsule interface. Who takes the structure out of it sets release to NULL. */
template <typename Structure>
nb::object capsule(std::unique_ptr<Structure> structure, const char *name) {
    PyObject *made = PyCapsule_New(structure.get(), name, [](PyObject *object) {
        auto *held = static_cast<Structure *>(PyCapsule_GetPointer(object, PyCapsule_GetName(object)));
        if (held->release != nullptr) held->release(held);
        delete held;
    });
    if (made == nullptr) {
        structure->release(structure.get());
        throw nb::python_error();
    }
    structure.release();
    return nb::steal(made);
}

} // namespace

Column::Column(Pair &pair, const supply_block_t &block, int index) : sequence(block.sequence) {
    supply_column_t column;
    pair.check(supply_column(pair.handle(), &block, index, &column));
    name = column.name;
    format = column.format;
    child_format = column.child_format;
    element_count = column.element_count;
    null_count = column.null_count;
    data_bytes = column.data_bytes;
    offsets = column.offsets;
    data_ = column.data;
    pair.check(supply_export_arrow(pair.handle(), &block, index, nullptr, &array_));
}

Column::~Column() { array_.release(&array_); }

const void *Column::values(uint8_t, uint8_t bits, const std::vector<size_t> &shape, size_t begin) const {
    size_t bytes = bits / 8;
    for (size_t length : shape)
        if (__builtin_mul_overflow(bytes, length, &bytes)) bytes = SIZE_MAX;
    if (begin > data_bytes || bytes > data_bytes - begin)
        raise(SUPPLY_ERROR_CONTRACT, "column '" + name +
                                         "': its offsets changed while the block was held: is something else "
                                         "writing into the mapped file?");
    return static_cast<const uint8_t *>(data_) + begin;
}

std::unique_ptr<Column> Block::column(const std::string &name) const {
    const int index = supply_column_index(pair_->handle(), name.c_str());
    if (index < 0) {
        std::string known;
        for (const std::string &other : names()) known += (known.empty() ? "'" : ", '") + other + "'";
        throw nb::key_error(("there is no column '" + name + "'; there are " + known).c_str());
    }
    return std::make_unique<Column>(*pair_, block_, index);
}

std::vector<std::string> Block::names() const {
    std::vector<std::string> names;
    supply_column_t column;
    for (int i = 0; i < block_.column_count; i++)
        if (supply_column(pair_->handle(), &block_, i, &column) == SUPPLY_OK) names.push_back(column.name);
    return names;
}

std::pair<nb::object, nb::object> Block::arrow() const {
    auto schema = std::make_unique<ArrowSchema>();
    auto array = std::make_unique<ArrowArray>();
    pair_->check(supply_export_arrow(pair_->handle(), &block_, SUPPLY_ALL_COLUMNS, schema.get(), array.get()));
    nb::object of_array = capsule(std::move(array), "arrow_array");
    return {capsule(std::move(schema), "arrow_schema"), of_array};
}

nb::object Block::arrow_schema() const {
    auto schema = std::make_unique<ArrowSchema>();
    pair_->check(supply_export_arrow(pair_->handle(), &block_, SUPPLY_ALL_COLUMNS, schema.get(), nullptr));
    return capsule(std::move(schema), "arrow_schema");
}
