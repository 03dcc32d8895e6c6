#include "block.h"

namespace nb = nanobind;

Column::Column(Pair &pair, const supply_block_t &block, int index) : sequence(block.sequence) {
    supply_column_t column;
    pair.check(supply_column(pair.handle(), &block, index, &column));
    name = column.name;
    format = column.format;
    child_format = column.child_format;
    element_count = column.element_count;
    null_count = column.null_count;
    data_bytes = column.data_bytes;
    data = static_cast<const uint8_t *>(column.data);
    pair.check(supply_export_arrow(pair.handle(), &block, index, nullptr, &array_));
    validity = static_cast<const uint8_t *>(array_.buffers[0]);
    offsets = array_.n_buffers == 3 ? static_cast<const int32_t *>(array_.buffers[1]) : nullptr;
}

std::unique_ptr<Column> Block::column(const std::string &name) const {
    const int index = supply_column_index(pair_->handle(), name.c_str());
    if (index == SUPPLY_ERROR_NO_COLUMN) {
        std::string known;
        for (const std::string &other : names()) known += (known.empty() ? "'" : ", '") + other + "'";
        throw nb::key_error(("there is no column '" + name + "'; there are " + known).c_str());
    }
    pair_->check(index);
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
    nb::object schema = arrow_schema();
    auto array = std::make_unique<ArrowArray>();
    pair_->check(supply_export_arrow(pair_->handle(), &block_, SUPPLY_ALL_COLUMNS, nullptr, array.get()));
    return {schema, capsule(std::move(array), "arrow_array")};
}
