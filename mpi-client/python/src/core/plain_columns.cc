#include "plain_columns.h"

#include <nanobind/ndarray.h>

#include <list>

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
