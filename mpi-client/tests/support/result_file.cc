#include "result_file.h"

#include <cstring>
#include <stdexcept>

#include "temporary_folder.h"

namespace supply_test {
namespace {

void require(bool holds, const std::string &what) {
    if (!holds) throw std::runtime_error("the contract is broken: " + what);
}

uint32_t width_of(const std::string &format, const std::string &child_format) {
    if (format.rfind("+w:", 0) == 0)
        return static_cast<uint32_t>(std::stoul(format.substr(3))) * width_of(child_format, "");
    if (format == "tdD" || format == "tiM") return 4;
    if (format.rfind("tsu:", 0) == 0) return 8;
    if (format.rfind("d:", 0) == 0) return 16;
    return format == "c" || format == "C"                    ? 1
           : format == "s" || format == "S" || format == "e" ? 2
           : format == "i" || format == "I" || format == "f" ? 4
                                                             : 8;
}

/** One buffer of a block: checks its place. */
std::string buffer(const std::string &block, uint32_t columns_end, uint32_t offset, uint32_t bytes) {
    if (bytes == 0) return "";
    require(offset % BUFFER_ALIGNMENT == 0 && offset >= columns_end, "the place of a buffer");
    require(offset + uint64_t{bytes} <= block.size(), "the end of a buffer");
    return block.substr(offset, bytes);
}

bool bit(const std::string &bits, uint32_t i) { return (bits.at(i / 8) >> (i % 8) & 1) != 0; }

using Values = std::vector<std::optional<std::string>>;

/** A number, a truth or a text as a test writes it down. */
std::string text_of(const std::string &format, const std::string &value) {
    if (format == "u" || format == "z") return value;
    if (format == "b") return value[0] != 0 ? "true" : "false";
    int64_t number = 0;
    memcpy(&number, value.data(), std::min(value.size(), sizeof number));
    if (format == "i") return std::to_string(static_cast<int32_t>(number));
    if (format == "s" || format == "e") return std::to_string(static_cast<int16_t>(number));
    if (format == "l" || format == "tDu" || format == "ttn") return std::to_string(number);
    std::string hex;
    for (const unsigned char byte : value) hex += "0123456789abcdef"[byte >> 4], hex += "0123456789abcdef"[byte & 15];
    return hex;
}

/** The columns of a block, one after the other, each with its children. */
class BlockReader {
  public:
    BlockReader(const std::string &block, const std::vector<schema_entry> &entries)
        : block(block), entries(entries),
          columns_end(static_cast<uint32_t>(sizeof(block_header) + entries.size() * sizeof(block_column))) {}

    /** The values of the next column, which has `elements` elements. */
    Values next(uint32_t elements) {
        const block_column described = column(at);
        const schema_entry &entry = entries.at(at++);
        const std::string format = entry.format;
        const std::string validity = buffer(block, columns_end, described.validity_offset, described.validity_bytes);
        const std::string offsets = buffer(block, columns_end, described.offsets_offset, described.offsets_bytes);
        const std::string data = buffer(block, columns_end, described.data_offset, described.data_bytes);
        const bool is_variable = format == "z" || format == "u", is_list = format == "+l" || format == "+m";
        require(validity.empty() || validity.size() == (elements + 7) / 8, "validity_bytes");
        require(offsets.size() == (is_variable || is_list ? 4 * (elements + size_t{1}) : 0), "offsets_bytes");
        require(!validity.empty() || described.null_count == 0, "null_count");
        const auto *ends = reinterpret_cast<const int32_t *>(offsets.data());
        Values values;
        if (is_list) {
            values = lists(elements, [ends](uint32_t i) { return static_cast<uint32_t>(ends[i]); });
        } else if (format == "+s") {
            values = structs(entry.children, elements);
        } else if (entry.children > 0) {
            const auto size = static_cast<uint32_t>(std::stoul(format.substr(3)));
            values = lists(elements, [size](uint32_t i) { return i * size; });
        } else {
            const uint32_t width = is_variable || format == "b" ? 0 : width_of(format, entry.child_format);
            const size_t fixed = format == "b" ? (elements + 7) / 8 : size_t{elements} * width;
            require(data.size() == (is_variable ? static_cast<size_t>(ends[elements]) : fixed), "data_bytes");
            for (uint32_t i = 0; i < elements; i++)
                values.emplace_back(format == "b" ? std::string(1, bit(data, i) ? '\1' : '\0')
                                    : is_variable ? data.substr(static_cast<size_t>(ends[i]),
                                                                static_cast<size_t>(ends[i + 1] - ends[i]))
                                                  : data.substr(i * size_t{width}, width));
        }
        require(entry.children == 0 || data.empty(), "data of a parent");
        uint32_t nulls = 0;
        for (uint32_t i = 0; i < elements; i++)
            if (!validity.empty() && !bit(validity, i)) {
                values[i].reset();
                nulls++;
            }
        require(nulls == described.null_count, "null_count");
        return values;
    }

    bool has_next() const { return at < entries.size(); }

  private:
    block_column column(size_t index) const {
        block_column described;
        memcpy(&described, block.data() + sizeof(block_header) + index * sizeof described, sizeof described);
        return described;
    }

    /** The next column as a child: texts. */
    Values next_texts(uint32_t elements) {
        const schema_entry &entry = entries.at(at);
        Values values = next(elements);
        for (auto &value : values)
            value = !value ? "null" : entry.children > 0 ? *value : text_of(entry.format, *value);
        return values;
    }

    template <typename End>
    Values lists(uint32_t elements, End end) {
        const Values items = next_texts(end(elements));
        Values values;
        for (uint32_t i = 0; i < elements; i++) {
            std::string text;
            for (uint32_t j = end(i); j < end(i + 1); j++) text += (text.empty() ? "" : ", ") + *items.at(j);
            values.emplace_back("[" + text + "]");
        }
        return values;
    }

    Values structs(uint32_t children, uint32_t elements) {
        Values values(elements, "{");
        for (uint32_t i = 0; i < children; i++) {
            const std::string name = (i > 0 ? ", " : "") + std::string(entries.at(at).name) + ": ";
            const Values fields = next_texts(elements);
            for (uint32_t j = 0; j < elements; j++) *values[j] += name + *fields[j];
        }
        for (auto &value : values) *value += "}";
        return values;
    }

    const std::string &block;
    const std::vector<schema_entry> &entries;
    const uint32_t columns_end;
    size_t at = 0;
};

/** The first entry after an entry and its children. */
size_t skip(const std::vector<schema_entry> &entries, size_t index) {
    size_t next = index + 1;
    for (uint32_t i = 0; i < entries.at(index).children; i++) next = skip(entries, next);
    return next;
}

} // namespace

ResultFile read_result(const std::string &path) {
    const std::string file = read_file(path);
    ResultFile result;
    require(file.size() >= RING_OFFSET, "the size of the header");
    memcpy(&result.header, file.data(), sizeof result.header);
    const mapped_file_header &header = result.header;
    require(memcmp(header.magic, BLOCK_FILE_MAGIC, sizeof header.magic) == 0, "magic");
    require(header.sealed == SEALED_COMPLETE && header.file_use == FILE_USE_RESULT, "sealed, file_use");
    require(header.file_bytes == file.size() && header.ring_offset % BLOCK_BYTES_UNIT == 0, "file_bytes");
    require(header.published == header.block_count, "published");
    std::vector<schema_entry> entries(header.schema_columns);
    const uint64_t wide_bytes = header.schema_bytes, unit = BLOCK_BYTES_UNIT;
    require(header.ring_offset == RING_OFFSET + (wide_bytes + unit - 1) / unit * unit, "ring_offset");
    const char *schema = file.data() + (wide_bytes > 0 ? RING_OFFSET : SCHEMA_OFFSET);
    memcpy(entries.data(), schema, entries.size() * sizeof entries[0]);
    const char *texts = schema + entries.size() * sizeof entries[0];
    const auto name_of = [texts](const schema_entry &entry) {
        return entry.name_bytes > 0 ? std::string(texts + entry.name_offset) : std::string(entry.name);
    };
    for (size_t i = 0; i < entries.size(); i = skip(entries, i))
        result.columns.push_back({name_of(entries[i]),
                                  entries[i].format,
                                  entries[i].child_format,
                                  entries[i].flags == COLUMN_NULLABLE,
                                  {},
                                  0});
    uint64_t rows = 0, end = header.ring_offset;
    for (uint64_t k = 0; k < header.block_count; k++) {
        const uint64_t at = header.ring_offset + k * header.block_bytes;
        require(at + sizeof(block_header) <= file.size(), "a block within the file");
        block_header block;
        memcpy(&block, file.data() + at, sizeof block);
        const notification &n = block.notification;
        require(n.generation == header.generation && n.kind == NOTIFICATION_BLOCK && n.sequence == k, "a notification");
        require(n.epoch == 0 && n.partition == 0 && n.first_element == rows && n.offset == at, "a position");
        require(n.size <= header.block_bytes && n.element_count > 0, "the size of a block");
        require(block.column_count == header.schema_columns, "column_count");
        const std::string bytes = file.substr(at, n.size);
        require(bytes.size() == n.size, "a whole block");
        BlockReader reader(bytes, entries);
        for (size_t i = 0; reader.has_next(); i++)
            for (auto &value : reader.next(n.element_count)) {
                ResultColumn &column = result.columns.at(i);
                column.null_count += !value;
                column.values.push_back(value);
            }
        rows += n.element_count;
        end = at + n.size;
        result.block_rows.push_back(n.element_count);
    }
    require(header.epoch_elements == rows, "epoch_elements");
    require(header.file_bytes == end, "the end of the file");
    return result;
}

} // namespace supply_test
