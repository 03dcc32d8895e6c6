#include "block.h"

#include <nanobind/ndarray.h>

#include <atomic>
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

namespace {

/* DLPack's DLManagedTensor. */
struct Managed {
    nb::dlpack::dltensor tensor;
    void *context;
    void (*deleter)(Managed *);
    int64_t shape[2], strides[2];
};

const char *const kCapsule = "dltensor";

/* What the tensors of a block hold together: its slot, and a reference for each column. */
struct Held {
    ~Held() {
        if (slot.release != nullptr) slot.release(&slot);
    }

    ArrowArray slot = {};
    std::list<References::Place> places;
    std::vector<Managed> tensors;
    std::atomic<size_t> living{1}; /* and the call that makes them */

    /* In any thread, as PyTorch drops a tensor. */
    void drop() noexcept {
        if (--living > 0 || !nb::is_alive()) return;
        const nb::gil_scoped_acquire acquired;
        if (acquired) delete this;
    }
};

nb::object capsule_of(Held &held, Managed &managed) {
    managed.tensor.shape = managed.shape;
    managed.tensor.strides = managed.strides;
    managed.context = &held;
    managed.deleter = [](Managed *of) { static_cast<Held *>(of->context)->drop(); };
    PyObject *const made = PyCapsule_New(&managed, kCapsule, [](PyObject *capsule) {
        /* PyTorch has not taken the tensor: it renames the capsule. */
        if (PyCapsule_IsValid(capsule, kCapsule)) {
            auto *of = static_cast<Managed *>(PyCapsule_GetPointer(capsule, kCapsule));
            of->deleter(of);
        }
    });
    if (made == nullptr) throw nb::python_error();
    held.living++;
    return nb::steal(made);
}

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
    const std::unique_ptr<Held, void (*)(Held *)> held(new Held, [](Held *of) { of->drop(); });
    pair.check(supply_export_arrow(pair.handle(), &block.fields(), types_.front()->index, nullptr, &held->slot));
    for (const auto &type : types_)
        held->places.emplace_back(pair.references(), References::Entry{block.fields().sequence, {type, &type->name}});
    held->tensors.resize(types_.size());
    nb::list tensors;
    for (size_t i = 0; i < types_.size(); i++) {
        const ColumnType &type = *types_[i];
        supply_column_t column;
        pair.check(supply_column(pair.handle(), &block.fields(), type.index, &column));
        if (column.null_count > 0) return nb::none();
        const int64_t width = type.widths.empty() ? 1 : static_cast<int64_t>(type.widths.front());
        Managed &managed = held->tensors[i];
        managed.shape[0] = column.element_count;
        managed.shape[1] = managed.strides[0] = width;
        managed.strides[1] = 1;
        managed.tensor.data = const_cast<void *>(column.data);
        managed.tensor.device = {nb::device::cpu::value, 0};
        managed.tensor.ndim = type.widths.empty() ? 1 : 2;
        managed.tensor.dtype = type.type;
        tensors.append(tensor_of(capsule_of(*held, managed)));
    }
    return tensors;
}
