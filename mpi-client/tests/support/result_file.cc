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
    if (format == "tdD") return 4;
    if (format.rfind("tsu:", 0) == 0) return 8;
    if (format.rfind("d:", 0) == 0) return 16;
    return format == "c" || format == "C"                    ? 1
           : format == "s" || format == "S"                  ? 2
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

void add_values(ResultColumn &column, const std::string &block, const block_column &described, uint32_t columns_end,
                uint32_t rows) {
    const std::string validity = buffer(block, columns_end, described.validity_offset, described.validity_bytes);
    const std::string offsets = buffer(block, columns_end, described.offsets_offset, described.offsets_bytes);
    const std::string data = buffer(block, columns_end, described.data_offset, described.data_bytes);
    const bool variable = column.format == "z" || column.format == "u";
    require(validity.empty() || validity.size() == (rows + 7) / 8, "validity_bytes");
    require(offsets.size() == (variable ? 4 * (rows + size_t{1}) : 0), "offsets_bytes");
    require(!validity.empty() || described.null_count == 0, "null_count");
    const auto *ends = reinterpret_cast<const int32_t *>(offsets.data());
    uint32_t nulls = 0;
    for (uint32_t i = 0; i < rows; i++) {
        std::optional<std::string> value;
        if (column.format == "b")
            value = std::string(1, bit(data, i) ? '\1' : '\0');
        else if (variable)
            value = data.substr(static_cast<size_t>(ends[i]), static_cast<size_t>(ends[i + 1] - ends[i]));
        else
            value = data.substr(i * size_t{width_of(column.format, column.child_format)},
                                width_of(column.format, column.child_format));
        if (!validity.empty() && !bit(validity, i)) {
            value.reset();
            nulls++;
        }
        column.values.push_back(value);
    }
    require(nulls == described.null_count, "null_count");
    column.null_count += nulls;
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
    require(header.file_bytes == file.size() && header.ring_offset == RING_OFFSET, "file_bytes");
    require(header.published == header.block_count, "published");
    for (uint32_t i = 0; i < header.schema_columns; i++) {
        const auto *entry = reinterpret_cast<const schema_entry *>(file.data() + SCHEMA_OFFSET) + i;
        result.columns.push_back(
            {entry->name, entry->format, entry->child_format, entry->flags == COLUMN_NULLABLE, {}, 0});
    }
    uint64_t rows = 0, end = RING_OFFSET;
    for (uint64_t k = 0; k < header.block_count; k++) {
        const uint64_t at = RING_OFFSET + k * header.block_bytes;
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
        const auto columns_end = static_cast<uint32_t>(sizeof block + block.column_count * sizeof(block_column));
        for (uint32_t i = 0; i < block.column_count; i++) {
            const auto *described = reinterpret_cast<const block_column *>(bytes.data() + sizeof block) + i;
            add_values(result.columns[i], bytes, *described, columns_end, n.element_count);
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
