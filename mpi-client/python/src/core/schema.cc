#include "schema.h"

#include <cstdlib>
#include <cstring>

namespace nb = nanobind;

namespace {

constexpr char kList[] = "+w:";

/* False: no number of DLPack. */
bool number(const std::string &format, nb::dlpack::dtype &type) {
    using code = nb::dlpack::dtype_code;
    static const struct {
        char format;
        code kind;
        uint8_t bits;
    } numbers[] = {
        {'c', code::Int, 8},    {'s', code::Int, 16},   {'i', code::Int, 32},  {'l', code::Int, 64},
        {'C', code::UInt, 8},   {'S', code::UInt, 16},  {'I', code::UInt, 32}, {'L', code::UInt, 64},
        {'f', code::Float, 32}, {'g', code::Float, 64},
    };
    if (format.size() != 1) return false;
    for (const auto &known : numbers) {
        if (known.format != format[0]) continue;
        type = {static_cast<uint8_t>(known.kind), known.bits, 1};
        return true;
    }
    return false;
}

} // namespace

ColumnType::ColumnType(int index, const supply_field_t &field)
    : index(index), name(field.name), format(field.format), child_format(field.child_format), type{}, width(0) {
    const bool is_list = format.compare(0, strlen(kList), kList) == 0;
    if (is_list) width = strtoul(format.c_str() + strlen(kList), nullptr, 10);
    is_plain = number(is_list ? child_format : format, type) && is_list == (width > 0);
}

void Schema::add(int index, const supply_field_t &field) {
    columns_.emplace(field.name, std::make_shared<ColumnType>(index, field));
}

std::shared_ptr<const ColumnType> Schema::find(const std::string &name) const {
    const auto found = columns_.find(name);
    return found == columns_.end() ? nullptr : found->second;
}
