#include "in_place.h"

#include <sys/stat.h>

#include <cstring>
#include <stdexcept>

namespace supply_test {

std::string foreign_contents(size_t bytes, char first) {
    std::string contents(bytes, '\0');
    for (size_t i = 0; i < bytes; i++) contents[i] = static_cast<char>(first + i % 251);
    return contents;
}

foreign_file entry_of(const std::string &path) {
    struct stat found;
    if (stat(path.c_str(), &found) != 0) throw std::runtime_error("no file " + path);
    foreign_file entry = {};
    path.copy(entry.path, sizeof entry.path - 1);
    entry.device = found.st_dev;
    entry.inode = found.st_ino;
    entry.file_bytes = static_cast<uint64_t>(found.st_size);
    entry.modified =
        static_cast<uint64_t>(found.st_mtim.tv_sec) * 1000000000u + static_cast<uint64_t>(found.st_mtim.tv_nsec);
    return entry;
}

window window_of(uint32_t file, uint64_t offset, uint64_t bytes) {
    window window = {};
    window.file = file;
    window.offset = offset;
    window.window_bytes = bytes;
    return window;
}

view inline_view(const std::string &value) {
    view view = {};
    view.value_bytes = static_cast<int32_t>(value.size());
    memcpy(reinterpret_cast<char *>(&view) + offsetof(struct view, start), value.data(), value.size());
    return view;
}

view view_of(const std::string &value, int32_t window, int32_t offset) {
    view view = inline_view(value.substr(0, sizeof view.start));
    view.value_bytes = static_cast<int32_t>(value.size());
    view.window = window;
    view.offset = offset;
    return view;
}

std::vector<Column> datum_columns_in_place(uint32_t file, const std::string &contents, size_t value_bytes,
                                           const std::vector<Element> &elements) {
    std::vector<view> views;
    for (size_t i = 0; i < elements.size(); i++) {
        const std::string value = contents.substr(i * value_bytes, value_bytes);
        views.push_back(value_bytes <= VIEW_INLINE_MAX ? inline_view(value)
                                                       : view_of(value, 0, static_cast<int32_t>(i * value_bytes)));
    }
    std::vector<Column> columns = datum_columns(elements);
    const std::vector<window> windows = {window_of(file, 0, contents.size())};
    columns.back() = Column::views("data", value_bytes <= VIEW_INLINE_MAX ? std::vector<window>() : windows, views);
    return columns;
}

} // namespace supply_test
