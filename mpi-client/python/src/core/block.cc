#include "block.h"

namespace nb = nanobind;

std::unique_ptr<Column> Block::column(const std::string &name) const {
    std::shared_ptr<const ColumnType> type = pair_->schema().find(name);
    if (type != nullptr) return std::make_unique<Column>(*pair_, block_, std::move(type));
    std::string known;
    for (const std::string &other : names()) known += (known.empty() ? "'" : ", '") + other + "'";
    throw nb::key_error(("there is no column '" + name + "'; there are " + known).c_str());
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
