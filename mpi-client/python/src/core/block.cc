#include "block.h"

#include <nanobind/ndarray.h>

#include <list>

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

namespace nb = nanobind;

namespace {

/* What the tensors of a block hold together: its slot, by the first column, and a reference for each column. */
struct Held {
    explicit Held(std::unique_ptr<Column> first) : slot(std::move(first)) {}
    const std::unique_ptr<Column> slot;
    std::list<References::Place> others;
};

} // namespace

std::unique_ptr<PlainColumns> PlainColumns::of(const Block &block, const std::vector<std::string> &names) {
    auto columns = std::make_unique<PlainColumns>();
    for (const std::string &name : names) {
        std::shared_ptr<const ColumnType> type = block.pair().schema().find(name);
        /* Fixed lists with a child may have nulls in it. */
        if (type == nullptr || !type->is_plain || !type->children.empty()) return nullptr;
        columns->types_.push_back(std::move(type));
    }
    return columns->types_.empty() ? nullptr : std::move(columns);
}

nb::object PlainColumns::tensors(const Block &block) const {
    Pair &pair = block.pair();
    auto held = std::make_unique<Held>(std::make_unique<Column>(pair, block.fields(), types_.front()));
    for (size_t i = 1; i < types_.size(); i++)
        held->others.emplace_back(pair.references(),
                                  References::Entry{block.fields().sequence, {types_[i], &types_[i]->name}});
    const nb::capsule owner(held.release(), [](void *of) noexcept { delete static_cast<Held *>(of); });
    nb::list tensors;
    for (const auto &type : types_) {
        supply_column_t column;
        pair.check(supply_column(pair.handle(), &block.fields(), type->index, &column));
        if (column.null_count > 0) return nb::none();
        size_t shape[] = {column.element_count, type->widths.empty() ? 1 : type->widths.front()};
        tensors.append(tensor(nb::ndarray<nb::no_framework, nb::ro>(column.data, type->widths.empty() ? 1 : 2, shape,
                                                                    owner, nullptr, type->type)));
    }
    return tensors;
}
