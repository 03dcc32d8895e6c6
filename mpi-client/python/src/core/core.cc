// The extension module spark_supplier._core. _core.pyi lists its types and calls.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "block.h"
#include "layout.h"
#include "result.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/* An array of the framework over a column's values, from `begin` bytes on. It keeps the column and the block alive. */
template <typename Framework>
nb::ndarray<Framework, nb::ro> array(nb::handle self, uint8_t kind, uint8_t bits, const std::vector<size_t> &shape,
                                     size_t begin) {
    const auto &column = nb::cast<const Column &>(self);
    return nb::ndarray<Framework, nb::ro>(column.data + begin, shape.size(), shape.data(), self, nullptr,
                                          nb::dlpack::dtype{kind, bits, 1});
}

/* The same over all numbers of a plain column. */
template <typename Framework>
nb::ndarray<Framework, nb::ro> plain_array(nb::handle self) {
    const auto &column = nb::cast<const Column &>(self);
    const std::vector<size_t> shape = column.shape();
    return nb::ndarray<Framework, nb::ro>(column.data, shape.size(), shape.data(), self, nullptr, column.type->type);
}

nb::object plain_tensor(nb::handle self) { return tensor_of(nb::cast(plain_array<nb::no_framework>(self))); }

nb::object array_tensor(nb::handle self, uint8_t kind, uint8_t bits, const std::vector<size_t> &shape, size_t begin) {
    return tensor_of(nb::cast(array<nb::no_framework>(self, kind, bits, shape, begin)));
}

/* An array over values of a column that lie `step` bytes apart, from element `first` on; shape[0] is their number. */
template <typename Framework>
nb::ndarray<Framework, nb::ro> strided_array(nb::handle self, uint8_t kind, uint8_t bits,
                                             const std::vector<size_t> &shape, uint32_t first, size_t step) {
    const auto &column = nb::cast<const Column &>(self);
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size() - 1; i > 1; i--) strides[i - 1] = strides[i] * static_cast<int64_t>(shape[i]);
    strides[0] = static_cast<int64_t>(step / (bits / 8));
    return nb::ndarray<Framework, nb::ro>(column.values().at(first).data, shape.size(), shape.data(), self,
                                          strides.data(), nb::dlpack::dtype{kind, bits, 1});
}

nb::object strided_tensor(nb::handle self, uint8_t kind, uint8_t bits, const std::vector<size_t> &shape, uint32_t first,
                          size_t step) {
    return tensor_of(nb::cast(strided_array<nb::no_framework>(self, kind, bits, shape, first, step)));
}

/* None: there is no exchange. */
nb::object exchanged(const supply_exchange_statistics_t &of) {
    if (of.ranks == 0) return nb::none();
    return nb::make_tuple(of.ranks, of.copying_ranks, of.forwarded_ranks, of.window_bytes, of.windows, of.rounds,
                          of.collectives, of.copied_bytes, of.sent_bytes, of.seconds_gathering, of.seconds_agreeing,
                          of.seconds_copying, of.seconds_sending);
}

/* Values of any length: an array of bytes for each. */
nb::list views(nb::handle self, uint32_t first, uint32_t count) {
    const auto &column = nb::cast<const Column &>(self);
    nb::list list;
    for (uint32_t i = first; i < first + count; i++) {
        const Values::Value value = column.values().at(i);
        list.append(nb::ndarray<nb::numpy, const uint8_t>(value.data, 1, &value.bytes, self));
    }
    return list;
}

/* The place of each value's end, if they stand one after the other. */
void ends(const Column &column, uint32_t first, nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> to) {
    column.values().gather(first, static_cast<uint32_t>(to.size()), to.data(), nullptr, 0);
}

void gather(const Column &column, uint32_t first, uint32_t count, nb::ndarray<nb::c_contig, nb::device::cpu> to) {
    column.values().gather(first, count, nullptr, to.data(), to.nbytes());
}

nb::object offsets(nb::handle self) {
    const auto &column = nb::cast<const Column &>(self);
    if (column.offsets == nullptr) return nb::none();
    const size_t shape[] = {column.element_count + size_t{1}};
    return nb::cast(nb::ndarray<nb::numpy, const int32_t>(column.offsets, 1, shape, self));
}

/* The validity bitmap, or None if all elements have a value. */
nb::object validity(nb::handle self) {
    const auto &column = nb::cast<const Column &>(self);
    if (column.validity == nullptr) return nb::none();
    const size_t shape[] = {(column.element_count + size_t{7}) / 8};
    return nb::cast(nb::ndarray<nb::numpy, const uint8_t>(column.validity, 1, shape, self));
}

/* Name and Arrow format of each column. */
std::vector<std::pair<std::string, std::string>> formats(Pair &pair) {
    const int count = pair.column_count();
    std::vector<std::pair<std::string, std::string>> listed;
    supply_field_t field;
    for (int i = 0; i < count; i++) {
        pair.check(supply_field(pair.handle(), i, &field));
        listed.emplace_back(field.name, field.format);
    }
    return listed;
}

/* For each reference to a block: its sequence, and the name of a view's column or None. */
std::vector<std::pair<uint64_t, nb::object>> references(const Pair &pair) {
    std::vector<std::pair<uint64_t, nb::object>> listed;
    for (const References::Entry &entry : pair.references()->entries())
        listed.emplace_back(entry.sequence, entry.view_of ? nb::cast(*entry.view_of) : nb::none());
    return listed;
}

/* ("block", the block), ("end of epoch", (epoch, position after it)), ("end of data", None) or ("nothing", None). */
nb::tuple received(std::shared_ptr<Pair> pair, supply_status_t status, const supply_block_t &block) {
    switch (status) {
        case SUPPLY_AGAIN:
            return nb::make_tuple("nothing", nb::none());
        case SUPPLY_END_OF_DATA:
            return nb::make_tuple("end of data", nb::none());
        case SUPPLY_END_OF_EPOCH:
            return nb::make_tuple("end of epoch", nb::make_tuple(block.epoch, pair->position_after(block, 0)));
        default:
            return nb::make_tuple("block", std::make_shared<Block>(std::move(pair), block));
    }
}

nb::tuple next(std::shared_ptr<Pair> pair, bool once) {
    supply_block_t block;
    const supply_status_t status = pair->next(block, once);
    return received(std::move(pair), status, block);
}

nb::tuple next_now(std::shared_ptr<Pair> pair) {
    supply_block_t block;
    const supply_status_t status = pair->next_now(block);
    return received(std::move(pair), status, block);
}

} // namespace

NB_MODULE(_core, module) {
    // Python's exit closes a pair that is still open, but only after nanobind has checked for leaks.
    nb::set_leak_warnings(false);
    module.attr("version") = supply_version();
    module.attr("contract_version") = supply_contract_version();
    nb::dict policies;
    policies["supplied"] = static_cast<int>(SUPPLY_EXCHANGE_AS_SUPPLIED);
    policies["all"] = static_cast<int>(SUPPLY_EXCHANGE_ALL);
    policies["hash"] = static_cast<int>(SUPPLY_EXCHANGE_HASH);
    policies["balance"] = static_cast<int>(SUPPLY_EXCHANGE_BALANCE);
    policies["range"] = static_cast<int>(SUPPLY_EXCHANGE_RANGE);
    module.attr("exchange_policies") = policies;
    nb::dict layout;
#define FIELD(name, offset, bytes) {name, offset, bytes},
    static const struct {
        const char *name;
        int offset, bytes;
    } fields[] = {LAYOUT(FIELD)};
    for (const auto &field : fields) layout[field.name] = nb::make_tuple(field.offset, field.bytes);
    module.attr("layout") = layout;

    nb::class_<Pair>(module, "Pair", nb::is_weak_referenceable())
        .def(
            "__init__",
            [](Pair *self, const std::string &mapped_files, const std::string &named_pipes, int local_rank, int rank,
               double timeout, size_t ring_bytes, size_t block_bytes, const std::string &group,
               const std::string &position, const std::string &results_folder, bool exchange, int reader, int readers,
               const std::string &connect, const std::string &key, int ranks) {
                new (self)
                    Pair(Options{mapped_files, named_pipes, group, position, results_folder, local_rank, rank, timeout,
                                 ring_bytes, block_bytes, exchange, reader, readers, connect, key, ranks});
            },
            "mapped_files"_a, "named_pipes"_a, "local_rank"_a, "rank"_a, "timeout"_a, "ring_bytes"_a, "block_bytes"_a,
            "group"_a, "position"_a, "results_folder"_a, "exchange"_a, "reader"_a = 0, "readers"_a = 0,
            "connect"_a = "", "key"_a = "", "ranks"_a = 0)
        .def(
            "exchange",
            [](Pair &pair, nb::object transport, int policy, const std::string &column, bool nulls_together,
               double fraction, uint64_t seed, size_t window_bytes, size_t memory_bytes,
               const std::string &spill_folder, bool messages_only) {
                pair.exchange(std::move(transport),
                              ExchangeOptions{static_cast<supply_exchange_policy_t>(policy), column, nulls_together,
                                              fraction, seed, window_bytes, memory_bytes, spill_folder, messages_only});
            },
            "transport"_a, "policy"_a, "column"_a, "nulls_together"_a, "fraction"_a, "seed"_a, "window_bytes"_a,
            "memory_bytes"_a, "spill_folder"_a, "messages_only"_a)
        .def("next", &next, "once"_a)
        .def("next_now", &next_now)
        .def("position", &Pair::position)
        .def("hold_end", &Pair::hold_end)
        .def("fail", &Pair::fail, "text"_a)
        .def("close", &Pair::close)
        .def("abort", &Pair::abort, "reason"_a)
        .def("finish", &Pair::finish)
        .def("abandon_in_child", &Pair::abandon_in_child)
        .def("references", &references)
        .def("formats", &formats)
        .def("arrow_schema", &Pair::arrow_schema)
        .def_prop_ro("is_open", &Pair::is_open)
        .def_prop_ro("statistics",
                     [](const Pair &pair) {
                         supply_statistics_t statistics;
                         supply_statistics(pair.handle(), &statistics);
                         return nb::make_tuple(statistics.elements, statistics.blocks, statistics.bytes,
                                               statistics.seconds_waited, exchanged(statistics.exchange));
                     })
        .def_prop_ro("counts", &Pair::counts)
        .def_prop_ro("mapping", [](const Pair &pair) {
            size_t bytes;
            const void *address = supply_mapping(pair.handle(), &bytes);
            return nb::make_tuple(reinterpret_cast<uintptr_t>(address), bytes);
        });

    nb::class_<Result>(module, "Result", nb::is_weak_referenceable())
        .def("__init__", [](Result *self, const Pair &pair, const std::string &name,
                            const nb::list &fields) { new (self) Result(pair, name, fields_from(fields)); })
        .def(
            "__init__",
            [](Result *self, const std::string &mapped_files, const std::string &named_pipes, int local_rank, int rank,
               size_t block_bytes, const std::string &group, const std::string &results_folder, const std::string &name,
               const nb::list &fields) {
                new (self) Result(Options{mapped_files, named_pipes, group, "", results_folder, local_rank, rank, 0, 0,
                                          block_bytes, false},
                                  name, fields_from(fields));
            },
            "mapped_files"_a, "named_pipes"_a, "local_rank"_a, "rank"_a, "block_bytes"_a, "group"_a, "results_folder"_a,
            "name"_a, "fields"_a)
        .def("write_arrow", &Result::write_arrow, "schema"_a, "array"_a)
        .def("write_stream", &Result::write_stream, "stream"_a)
        .def("seal", &Result::seal)
        .def("abort", &Result::abort, "reason"_a)
        .def("abandon_in_child", &Result::abandon_in_child)
        .def_prop_ro("is_open", &Result::is_open)
        .def_prop_ro("rows", &Result::rows);
    module.def("result_fields", &result_fields, "schema"_a);
    module.def("stream_fields", &stream_fields, "stream"_a);

    nb::class_<Block>(module, "Block")
        .def("column", &Block::column, "name"_a)
        .def("plain_columns", &PlainColumns::of, "names"_a)
        .def("arrow", &Block::arrow)
        .def("arrow_schema", &Block::arrow_schema)
        .def("position_after", &Block::position_after, "elements"_a)
        .def("release", &Block::release)
        .def_prop_ro("names", &Block::names)
        .def_prop_ro("sequence", [](const Block &block) { return block.fields().sequence; })
        .def_prop_ro("epoch", [](const Block &block) { return block.fields().epoch; })
        .def_prop_ro("partition", [](const Block &block) { return block.fields().partition; })
        .def_prop_ro("first_element", [](const Block &block) { return block.fields().first_element; })
        .def_prop_ro("element_count", [](const Block &block) { return block.fields().element_count; })
        .def_prop_ro("bytes", [](const Block &block) { return block.fields().bytes; });

    nb::class_<PlainColumns>(module, "PlainColumns").def("tensors", &PlainColumns::tensors, "block"_a);

    nb::class_<Column>(module, "Column")
        .def("numpy", &plain_array<nb::numpy>)
        .def("numpy", &array<nb::numpy>, "kind"_a, "bits"_a, "shape"_a, "begin"_a = 0)
        .def("torch", &plain_tensor)
        .def("torch", &array_tensor, "kind"_a, "bits"_a, "shape"_a, "begin"_a = 0)
        .def("strided_numpy", &strided_array<nb::numpy>, "kind"_a, "bits"_a, "shape"_a, "first"_a, "step"_a)
        .def("strided_torch", &strided_tensor, "kind"_a, "bits"_a, "shape"_a, "first"_a, "step"_a)
        .def(
            "step",
            [](const Column &column, uint32_t first, uint32_t count, size_t unit) {
                return column.values().step(first, count, unit);
            },
            "first"_a, "count"_a, "unit"_a)
        .def("views", &views, "first"_a, "count"_a)
        .def("ends", &ends, "first"_a, "to"_a)
        .def("gather", &gather, "first"_a, "count"_a, "to"_a)
        .def("offsets", &offsets)
        .def("validity", &validity)
        .def("children",
             [](const Column &column) {
                 nb::list children;
                 for (size_t i = 0; i < column.type->children.size(); i++) children.append(nb::cast(column.child(i)));
                 return children;
             })
        .def("nulls_within", &Column::nulls_within)
        .def("shape", [](const Column &column) { return nb::tuple(nb::cast(column.shape())); })
        .def_prop_ro("field", [](const Column &column) { return column.type->field; })
        .def_prop_ro("leaf_format", [](const Column &column) { return column.type->leaf_format; })
        .def_prop_ro("is_plain", [](const Column &column) { return column.type->is_plain; })
        .def_prop_ro("name", [](const Column &column) { return column.type->name; })
        .def_prop_ro("format", [](const Column &column) { return column.type->format; })
        .def_prop_ro("sequence", &Column::sequence)
        .def_ro("element_count", &Column::element_count)
        .def_ro("null_count", &Column::null_count)
        .def_ro("data_bytes", &Column::data_bytes);
}
