#include "schema.h"

#include <cstdlib>
#include <cstring>

namespace nb = nanobind;

namespace {

const char *const kFixedList = "+w:";

bool begins_with(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}

/* False: no number of DLPack. */
bool number(const std::string &format, nb::dlpack::dtype &type) {
    using code = nb::dlpack::dtype_code;
    static const struct {
        const char *format;
        code kind;
        uint8_t bits;
    } numbers[] = {
        {"c", code::Int, 8},    {"s", code::Int, 16},   {"i", code::Int, 32},   {"l", code::Int, 64},
        {"C", code::UInt, 8},   {"S", code::UInt, 16},  {"I", code::UInt, 32},  {"L", code::UInt, 64},
        {"e", code::Float, 16}, {"f", code::Float, 32}, {"g", code::Float, 64}, {"tdD", code::Int, 32},
        {"tiM", code::Int, 32}, {"tDu", code::Int, 64}, {"ttn", code::Int, 64},
    };
    type = {static_cast<uint8_t>(code::Int), 64, 1};
    for (const auto &known : numbers) {
        if (format != known.format) continue;
        type = {static_cast<uint8_t>(known.kind), known.bits, 1};
        return true;
    }
    return begins_with(format, "tsu:");
}

} // namespace

ColumnType::ColumnType(supply_t *supply, int index, const supply_field_t &field, std::string path, bool is_map_entry)
    : index(index), field(field.name), name(std::move(path)), format(field.format), child_format(field.child_format),
      leaf_format(format) {
    static const char *const parts_of_map[] = {"keys", "values"};
    supply_field_t child;
    for (int i = 0; i < field.child_count && supply_field_child(supply, &field, i, &child) == SUPPLY_OK; i++) {
        std::string within = name;
        if (format == "+s") within += std::string(".") + (is_map_entry && i < 2 ? parts_of_map[i] : child.name);
        children.push_back(std::make_shared<ColumnType>(supply, index, child, std::move(within), format == "+m"));
    }
    if (begins_with(format, kFixedList)) {
        widths.push_back(strtoul(format.c_str() + strlen(kFixedList), nullptr, 10));
        leaf_format = child_format;
        if (!children.empty()) {
            leaf_format = children[0]->leaf_format;
            widths.insert(widths.end(), children[0]->widths.begin(), children[0]->widths.end());
        }
    }
    is_plain = number(leaf_format, type);
}

std::vector<size_t> ColumnType::find(const std::string &fields) const {
    if (format != "+s") return {};
    for (size_t i = 0; i < children.size(); i++)
        if (children[i]->field == fields) return {i};
    for (size_t i = 0; i < children.size(); i++) {
        const std::string start = children[i]->field + ".";
        if (!begins_with(fields, start)) continue;
        std::vector<size_t> found = children[i]->find(fields.substr(start.size()));
        if (found.empty()) continue;
        found.insert(found.begin(), i);
        return found;
    }
    return {};
}

void Schema::add(supply_t *supply, int index, const supply_field_t &field) {
    columns_.emplace(field.name, std::make_shared<ColumnType>(supply, index, field, field.name, false));
}

std::shared_ptr<const ColumnType> Schema::find(const std::string &name) const {
    const auto found = columns_.find(name);
    return found == columns_.end() ? nullptr : found->second;
}
