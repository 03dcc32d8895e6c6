#include "schema.h"

#include <cstdlib>
#include <cstring>

#include "formats.h"

namespace nb = nanobind;

namespace {

const char *const kFixedList = "+w:";

bool begins_with(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}

/* False: no number of DLPack. */
bool number(const std::string &format, nb::dlpack::dtype &type) {
    using code = nb::dlpack::dtype_code;
#define NUMBER(text, bytes, kind) {text, {static_cast<uint8_t>(code::kind), bytes * 8, 1}},
    static const std::unordered_map<std::string, nb::dlpack::dtype> numbers = {FIXED_FORMATS(NUMBER)};
    const auto found = numbers.find(begins_with(format, "tsu:") ? "tsu:" : format);
    if (found == numbers.end()) return false;
    type = found->second;
    return true;
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
