#include "block_image.h"

#include <cstring>

namespace supply_test {

Column Column::fixed(std::string name, std::string format, std::string values) {
    Column column;
    column.name = std::move(name);
    column.format = std::move(format);
    column.values = std::move(values);
    return column;
}

Column Column::list(std::string name, std::string format, std::string child_format, std::string values) {
    Column column = fixed(std::move(name), std::move(format), std::move(values));
    column.child_format = std::move(child_format);
    return column;
}

Column Column::variable(std::string name, std::string format, const std::vector<std::string> &values) {
    Column column = fixed(std::move(name), std::move(format), "");
    column.offsets.push_back(0);
    for (const std::string &value : values) {
        column.values += value;
        column.offsets.push_back(static_cast<int32_t>(column.values.size()));
    }
    return column;
}

Column Column::bits(std::string name, const std::vector<bool> &values) {
    std::string bytes((values.size() + 7) / 8, '\0');
    for (size_t i = 0; i < values.size(); i++)
        if (values[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << i % 8);
    return fixed(std::move(name), "b", bytes);
}

Column Column::int32(std::string name, const std::vector<int32_t> &values) {
    return fixed(std::move(name), "i",
                 std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(int32_t)));
}

Column Column::parent(std::string name, std::string format, uint32_t children, std::vector<int32_t> offsets) {
    Column column = fixed(std::move(name), std::move(format), "");
    column.children = children;
    column.offsets = std::move(offsets);
    return column;
}

Column Column::views(std::string name, const std::vector<window> &windows, const std::vector<view> &views) {
    Column column = fixed(std::move(name), "vz",
                          std::string(reinterpret_cast<const char *>(views.data()), views.size() * sizeof(view)));
    column.offsets.resize(windows.size() * sizeof(window) / sizeof(int32_t));
    if (!windows.empty()) memcpy(column.offsets.data(), windows.data(), windows.size() * sizeof(window));
    return column;
}

BlockImage::BlockImage(const std::vector<Column> &columns, uint32_t count) : element_count(count) {
    size_t table_end = sizeof(block_header) + columns.size() * sizeof(block_column);
    bytes.resize((table_end + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT);
    header().column_count = static_cast<uint32_t>(columns.size());
    for (size_t i = 0; i < columns.size(); i++) {
        const Column &from = columns[i];
        block_column to = {};
        if (!from.validity.empty()) to.validity_offset = append(from.validity.data(), from.validity.size());
        to.validity_bytes = static_cast<uint32_t>(from.validity.size());
        to.null_count = from.null_count;
        to.offsets_bytes = static_cast<uint32_t>(from.offsets.size() * sizeof(int32_t));
        if (!from.offsets.empty()) to.offsets_offset = append(from.offsets.data(), to.offsets_bytes);
        to.data_offset = append(from.values.data(), from.values.size());
        to.data_bytes = static_cast<uint32_t>(from.values.size());
        column(i) = to;
    }
}

uint32_t BlockImage::append(const void *buffer, size_t size) {
    size_t offset = bytes.size();
    bytes.resize(offset + (size + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT);
    if (size > 0) memcpy(bytes.data() + offset, buffer, size);
    return static_cast<uint32_t>(offset);
}

std::vector<Column> datum_columns(const std::vector<Element> &elements) {
    std::vector<std::string> keys, data;
    std::vector<int32_t> labels, channels, heights, widths;
    std::vector<bool> encoded;
    for (const Element &element : elements) {
        keys.push_back(element.key);
        data.push_back(element.data);
        labels.push_back(element.label);
        channels.push_back(element.channels);
        heights.push_back(element.height);
        widths.push_back(element.width);
        encoded.push_back(element.encoded);
    }
    return {Column::variable("key", "z", keys), Column::int32("label", labels), Column::int32("channels", channels),
            Column::int32("height", heights),   Column::int32("width", widths), Column::bits("encoded", encoded),
            Column::variable("data", "z", data)};
}

BlockImage datum_block(const std::vector<Element> &elements) {
    return BlockImage(datum_columns(elements), static_cast<uint32_t>(elements.size()));
}

static bool is_long(const Column &column) { return column.name.size() >= sizeof schema_entry::name; }

std::string texts_of(const std::vector<Column> &columns) {
    std::string texts;
    for (const Column &column : columns)
        if (is_long(column)) texts += column.name + '\0';
    return texts;
}

std::vector<schema_entry> schema_of(const std::vector<Column> &columns) {
    std::vector<schema_entry> entries;
    uint32_t text_bytes = 0;
    for (const Column &column : columns) {
        schema_entry entry = {};
        if (is_long(column)) {
            entry.name_offset = text_bytes;
            entry.name_bytes = static_cast<uint32_t>(column.name.size());
            text_bytes += entry.name_bytes + 1;
        } else {
            strncpy(entry.name, column.name.c_str(), sizeof entry.name - 1);
        }
        strncpy(entry.format, column.format.c_str(), sizeof entry.format - 1);
        strncpy(entry.child_format, column.child_format.c_str(), sizeof entry.child_format - 1);
        if (!column.validity.empty()) entry.flags = COLUMN_NULLABLE;
        entry.children = column.children;
        entries.push_back(entry);
    }
    return entries;
}

Element numbered_element(uint64_t number, size_t data_bytes) {
    Element element;
    element.key = std::to_string(number);
    element.label = static_cast<int32_t>(number % 10);
    element.channels = 1;
    element.height = static_cast<int32_t>(number);
    element.width = static_cast<int32_t>(data_bytes);
    element.encoded = number % 3 == 0;
    element.data.assign(data_bytes, static_cast<char>('a' + number % 26));
    return element;
}

} // namespace supply_test
