// Writes the corpus of the fuzzer `notifications`: runs of a task that obeys the contract, except at the end of `edge`.
// Usage: seeds FOLDER
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "block_image.h"
#include "fuzzed_pair.h"
#include "in_place.h"
#include "resident_file.h"
#include "steps.h"

namespace supply_fuzz {
namespace {

using supply_test::BlockImage;
using supply_test::Column;

class Seed {
  public:
    void schema(const std::vector<schema_entry> &entries) {
        for (size_t i = 0; i < entries.size(); i++) {
            put<uint8_t>(SET_SCHEMA, static_cast<uint8_t>(i), 0);
            bytes(entries[i].name, strlen(entries[i].name));
            put<uint8_t>(SET_SCHEMA, static_cast<uint8_t>(i), offsetof(schema_entry, format));
            bytes(entries[i].format, strlen(entries[i].format));
            if (entries[i].child_format[0] != '\0') {
                put<uint8_t>(SET_SCHEMA, static_cast<uint8_t>(i), offsetof(schema_entry, child_format));
                bytes(entries[i].child_format, strlen(entries[i].child_format));
            }
            if (entries[i].children > 0) {
                put<uint8_t>(SET_SCHEMA, static_cast<uint8_t>(i), offsetof(schema_entry, children));
                bytes(&entries[i].children, sizeof entries[i].children);
            }
        }
        put<uint8_t>(SET_COLUMNS);
        put<uint32_t>(static_cast<uint32_t>(entries.size()));
    }

    void wide_schema(const std::vector<schema_entry> &entries, const std::string &texts) {
        const std::string all(reinterpret_cast<const char *>(entries.data()), entries.size() * sizeof entries[0]);
        const std::string image = all + texts;
        for (size_t from = 0; from < image.size(); from += UINT8_MAX) {
            put<uint8_t>(SET_WIDE);
            put<uint16_t>(static_cast<uint16_t>(from));
            bytes(&image[from], std::min<size_t>(UINT8_MAX, image.size() - from));
        }
        const auto count = static_cast<uint32_t>(image.size());
        put<uint8_t>(SET_HEADER);
        put<uint16_t>(static_cast<uint16_t>(offsetof(mapped_file_header, schema_bytes) -
                                            offsetof(mapped_file_header, published)));
        bytes(&count, sizeof count);
        put<uint8_t>(SET_COLUMNS);
        put<uint32_t>(static_cast<uint32_t>(entries.size()));
    }

    /** Writes a block into its slot; it is published, received and released. */
    void block(BlockImage image) {
        for (size_t from = sizeof(notification); from < image.bytes.size(); from += UINT8_MAX) {
            put<uint8_t>(SET_SLOT, static_cast<uint8_t>(sequence_));
            put<uint16_t>(static_cast<uint16_t>(from));
            bytes(&image.bytes[from], std::min<size_t>(UINT8_MAX, image.bytes.size() - from));
        }
        publish(NOTIFICATION_BLOCK, image.element_count, image.bytes.size());
    }

    void end(uint32_t kind) { publish(kind, 0, sizeof(block_header)); }

    /** Makes foreign file 2 this resident file; its zeros stay. */
    void resident_file(const std::string &contents) {
        for (size_t from = 0; from < contents.size();) {
            const size_t next = contents.find_first_not_of('\0', from);
            if (next == std::string::npos) return;
            const size_t zeros = contents.find(std::string(16, '\0'), next), end = std::min(zeros, contents.size());
            const size_t count = std::min<size_t>(UINT8_MAX, end - next);
            put<uint8_t>(SET_FILE);
            put<uint32_t>(static_cast<uint32_t>(next));
            bytes(&contents[next], count);
            from = next + count;
        }
    }

    /** Publishes a block of it. `in_file` is its copy there. */
    void publish_in_file(const notification &in_file, uint32_t epoch) {
        notification mixed = {};
        mixed.element_count = in_file.element_count;
        mixed.epoch = epoch;
        mixed.partition = in_file.partition;
        mixed.first_element = in_file.first_element;
        mixed.offset = in_file.offset ^ (RING_OFFSET + sequence_ % FuzzedPair::block_count * FuzzedPair::block_bytes);
        mixed.size = in_file.size ^ FuzzedPair::block_bytes;
        mixed.file = 2;
        put<uint8_t>(PUBLISH);
        append(&mixed, sizeof mixed);
        sequence_++;
    }
    void receive() { put<uint8_t>(RECEIVE, RELEASE); }

    void failure() {
        notification failure = {};
        failure.kind = NOTIFICATION_FAILURE;
        put<uint8_t>(NOTIFY);
        append(&failure, sizeof failure);
        put<uint8_t>(RECEIVE);
    }

    void write(const std::string &path) const {
        std::ofstream stream(path, std::ios::binary);
        stream << input_;
        if (!stream.flush()) found("cannot write a seed");
    }

  private:
    void append(const void *from, size_t count) { input_.append(static_cast<const char *>(from), count); }

    template <typename Number, typename... Numbers>
    void put(Numbers... numbers) {
        for (Number number : {static_cast<Number>(numbers)...}) append(&number, sizeof number);
    }

    void bytes(const void *from, size_t count) {
        put<uint8_t>(count);
        append(from, count);
    }

    void set_header(size_t offset, uint64_t number) {
        put<uint8_t>(SET_HEADER);
        put<uint16_t>(static_cast<uint16_t>(offset - offsetof(mapped_file_header, published)));
        bytes(&number, sizeof number);
    }

    /** If an end takes the slot of a block, the header after the copied notification is set to zeros. */
    void publish(uint32_t kind, uint32_t element_count, size_t size) {
        if (kind != NOTIFICATION_BLOCK) {
            put<uint8_t>(SET_SLOT, static_cast<uint8_t>(sequence_));
            put<uint16_t>(offsetof(block_header, column_count));
            bytes("\0\0\0", 4);
        }
        notification mixed = {};
        mixed.kind = kind ^ NOTIFICATION_BLOCK;
        mixed.element_count = element_count;
        mixed.size = size ^ FuzzedPair::block_bytes;
        put<uint8_t>(PUBLISH);
        append(&mixed, sizeof mixed);
        put<uint8_t>(RECEIVE);
        put<uint8_t>(RELEASE);
        sequence_++;
    }

    std::string input_;
    uint64_t sequence_ = 0;
};

std::vector<supply_test::Element> elements(uint64_t first, uint64_t count) {
    std::vector<supply_test::Element> elements;
    for (uint64_t i = 0; i < count; i++) elements.push_back(supply_test::numbered_element(first + i, 20 * i));
    return elements;
}

Seed datums() {
    Seed seed;
    seed.schema(schema_of(supply_test::datum_columns(elements(0, 1))));
    for (uint64_t i = 0; i < 3; i++) seed.block(supply_test::datum_block(elements(10 * i, 1 + 4 * i)));
    seed.end(NOTIFICATION_END_OF_EPOCH);
    seed.block(supply_test::datum_block(elements(0, 2)));
    seed.end(NOTIFICATION_END_OF_DATA);
    return seed;
}

Seed every_format() {
    std::vector<Column> columns = {Column::bits("b", {true, false, true}), Column::variable("z", "z", {"a", "", "bcd"}),
                                   Column::variable("u", "u", {"", "", "x"})};
    for (const char *format : {"c", "C", "s", "S", "i", "I", "f", "l", "L", "g", "+l"}) {
        const size_t width = strchr("cC", *format) ? 1 : strchr("sS", *format) ? 2 : strchr("iIf", *format) ? 4 : 8;
        columns.push_back(Column::fixed(format, format, std::string(3 * width, '\1')));
    }
    columns[1].validity = "\5";
    columns[1].null_count = 1;
    Seed seed;
    seed.schema(schema_of(columns));
    seed.block(BlockImage(columns, 3));
    seed.end(NOTIFICATION_END_OF_DATA);
    return seed;
}

/* Lists, structs and maps, each within another one. */
Seed children() {
    using namespace supply_test;
    std::vector<Column> columns = {
        Column::parent("tokens", "+l", 1, {0, 2, 2, 5}),
        Column::int32("item", {1, 2, 3, 4, 5}),
        Column::parent("point", "+s", 3),
        Column::variable("name", "u", {"a", "", "cd"}),
        Column::list("vector", "+w:2", "s", std::string(12, '\1')),
        Column::views("bytes", {window_of(1, 0, 13)},
                      {view_of(std::string(13, 'x'), 0, 0), inline_view("y"), inline_view("z")}),
        Column::parent("counts", "+m", 1, {0, 1, 1, 2}),
        Column::parent("entries", "+s", 2),
        Column::variable("key", "u", {"k", "l"}),
        Column::parent("value", "+l", 1, {0, 0, 3}),
        Column::bits("item", {true, false, true}),
        Column::parent("pairs", "+w:2", 1),
        Column::parent("item", "+l", 1, {0, 1, 2, 3, 3, 4, 6}),
        Column::int32("item", {1, 2, 3, 4, 5, 6}),
        Column::fixed("half", "e", std::string(6, '\1')),
        Column::fixed("time", "ttn", std::string(24, '\1')),
    };
    columns[1].validity = "\x1d";
    columns[1].null_count = 1;
    columns[2].validity = "\5";
    columns[2].null_count = 1;
    Seed seed;
    seed.schema(schema_of(columns));
    seed.block(BlockImage(columns, 3));
    seed.end(NOTIFICATION_END_OF_DATA);
    return seed;
}

Seed in_place() {
    const std::string contents(FuzzedPair::foreign_bytes, '\0'); /* only places and lengths matter */
    const auto block = [&](size_t value_bytes, uint64_t count) {
        return BlockImage(supply_test::datum_columns_in_place(1, contents, value_bytes, elements(0, count)),
                          static_cast<uint32_t>(count));
    };
    Seed seed;
    seed.schema(schema_of(supply_test::datum_columns_in_place(1, contents, 1, elements(0, 1))));
    seed.block(block(100, 3));
    seed.block(block(VIEW_INLINE_MAX, 2));
    seed.end(NOTIFICATION_END_OF_EPOCH);
    seed.block(block(VIEW_INLINE_MAX + 1, 5));
    seed.end(NOTIFICATION_END_OF_DATA);
    return seed;
}

/* Views into several windows, and without any. */
Seed windows() {
    using namespace supply_test;
    const std::vector<Column> columns = {
        Column::views("one", {window_of(1, 0, 13), window_of(1, 100, 3996), window_of(1, 4096, 0)},
                      {view_of(std::string(13, 'x'), 0, 0), inline_view("y"), view_of(std::string(996, 'x'), 1, 3000)}),
        Column::views("two", {}, {inline_view(""), inline_view("twelve bytes"), inline_view("z")})};
    Seed seed;
    seed.schema(schema_of(columns));
    seed.block(BlockImage(columns, 3));
    seed.end(NOTIFICATION_END_OF_DATA);
    return seed;
}

/* One value ends with its window, which is smaller than its file: the next bytes are in the file, but not the value's.
 */
Seed edge() {
    using namespace supply_test;
    const std::vector<Column> columns = {
        Column::views("edge", {window_of(1, 1000, 2000), window_of(1, 3500, 100)},
                      {view_of(std::string(100, 'x'), 0, 1900), view_of(std::string(100, 'x'), 1, 0)})};
    Seed seed;
    seed.schema(schema_of(columns));
    seed.block(BlockImage(columns, 2));
    BlockImage past = BlockImage(columns, 2);
    past.views(0)[0].offset++;
    seed.block(past);
    return seed;
}

Seed resident_file() {
    using namespace supply_test;
    const std::vector<schema_entry> schema = schema_of(datum_columns(elements(0, 1)));
    mapped_file_header pair = {};
    pair.rank = pair.local_rank = -1;
    ResidentFileImage image(pair, schema, FuzzedPair::block_bytes, 77);
    image.add(datum_block(elements(0, 2)), 5, 0);
    image.add(datum_block(elements(2, 1)), 6, 0);
    image.bytes().resize(FuzzedPair::resident_bytes);
    Seed seed;
    seed.schema(schema);
    seed.resident_file(image.seal());
    for (uint32_t epoch = 1; epoch < 3; epoch++) {
        for (const size_t k : {epoch % 2, 1 - epoch % 2}) {
            seed.publish_in_file(image.block(k).notification, epoch);
            seed.receive();
        }
        seed.end(NOTIFICATION_END_OF_EPOCH);
    }
    for (const size_t k : {1, 0}) seed.publish_in_file(image.block(k).notification, 3); /* one is read ahead */
    seed.receive();
    seed.receive();
    seed.end(NOTIFICATION_END_OF_DATA);
    return seed;
}

Seed wide() {
    using namespace supply_test;
    const std::vector<Column> columns = {Column::int32(std::string(200, 'a'), {1, 2}), Column::int32("", {3, 4}),
                                         Column::parent(std::string(130, 's'), "+s", 1),
                                         Column::variable(std::string(140, 't'), "u", {"x", "y"})};
    Seed seed;
    seed.wide_schema(schema_of(columns), texts_of(columns));
    seed.block(BlockImage(columns, 2));
    return seed;
}

Seed failed() {
    Seed seed;
    seed.failure();
    return seed;
}

} // namespace
} // namespace supply_fuzz

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: seeds FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = std::string(argv[1]) + "/";
    std::filesystem::create_directories(folder);
    supply_fuzz::datums().write(folder + "datums");
    supply_fuzz::every_format().write(folder + "every-format");
    supply_fuzz::children().write(folder + "children");
    supply_fuzz::in_place().write(folder + "in-place");
    supply_fuzz::windows().write(folder + "windows");
    supply_fuzz::edge().write(folder + "edge");
    supply_fuzz::resident_file().write(folder + "resident-file");
    supply_fuzz::wide().write(folder + "wide");
    supply_fuzz::failed().write(folder + "failure");
    return 0;
}
