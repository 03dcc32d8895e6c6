#include "block.h"

namespace nb = nanobind;

std::unique_ptr<Column> Block::column(const std::string &name) const {
    const Schema &schema = pair_->schema();
    std::shared_ptr<const ColumnType> type = schema.find(name);
    if (type != nullptr) return std::make_unique<Column>(*pair_, block_, std::move(type));
    std::string of_struct;
    for (size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
        type = schema.find(name.substr(0, dot));
        if (type == nullptr || type->format != "+s") continue;
        const std::vector<size_t> places = type->find(name.substr(dot + 1));
        of_struct = type->name;
        if (places.empty()) continue;
        auto column = std::make_unique<Column>(*pair_, block_, std::move(type));
        for (const size_t place : places) column = column->child(place);
        return column;
    }
    std::vector<std::string> others = names();
    if (!of_struct.empty()) {
        others.clear();
        for (const auto &field : schema.find(of_struct)->children) others.push_back(field->name);
    }
    std::string known;
    for (const std::string &other : others) known += (known.empty() ? "'" : ", '") + other + "'";
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
