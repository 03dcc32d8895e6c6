// Schemas of more columns, or longer names, than fit before the ring: pairs, Arrow, results.
#include <cstring>

#include "result_rows.h"
#include "supply_arrow.h"

namespace supply_test {
namespace {

const std::string long_name(60000, 'n');

std::vector<Column> numbered(size_t count) {
    std::vector<Column> columns;
    for (size_t i = 0; i < count; i++)
        columns.push_back(Column::int32("column_" + std::to_string(i), {static_cast<int32_t>(i), -1}));
    return columns;
}

class WideSchemaTest : public ResultTest {
  protected:
    /** The blocks have room for many columns. */
    WideSchemaTest() {
        options.block_bytes = 4 << 20;
        options.ring_bytes = 8 << 20;
    }

    void receive(const Handle &handle, Task &task, const std::vector<Column> &columns) {
        task.write_schema(schema_of(columns), texts_of(columns));
        task.supply(BlockImage(columns, 2));
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        ASSERT_EQ(static_cast<int>(columns.size()), block.column_count);
    }

    int32_t first_value(const Handle &handle, const char *name) {
        supply_column_t column;
        const int index = supply_column_index(handle.get(), name);
        EXPECT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, index, &column), handle) << name;
        EXPECT_STREQ(name, column.name);
        return *static_cast<const int32_t *>(column.data);
    }

    /** Writes the schema after `change` of its entries and texts, and expects an error with these words. */
    void expect_refused(void (*change)(std::vector<schema_entry> &entries, std::string &texts, uint32_t &bytes),
                        std::initializer_list<const char *> words) {
        const std::vector<Column> columns = {Column::int32(long_name, {1}), Column::int32("x", {1})};
        auto [handle, task] = attached();
        std::vector<schema_entry> entries = schema_of(columns);
        std::string texts = texts_of(columns);
        uint32_t bytes = static_cast<uint32_t>(2 * sizeof(schema_entry) + texts.size());
        change(entries, texts, bytes);
        task.header().schema_bytes = bytes;
        task.write_after_ring(
            std::string(reinterpret_cast<const char *>(entries.data()), entries.size() * sizeof entries[0]) + texts);
        __atomic_store_n(&task.header().schema_columns, static_cast<uint32_t>(entries.size()), __ATOMIC_RELEASE);
        task.supply(BlockImage(columns, 1));
        EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
        EXPECT_TRUE(says(supply_error(handle.get()), words));
    }

    supply_block_t block = {};
};

TEST_F(WideSchemaTest, TenThousandColumnsAreRead) {
    auto [handle, task] = attached();
    receive(handle, task, numbered(10000));
    for (const int32_t i : {0, 319, 320, 5000, 9999})
        EXPECT_EQ(i, first_value(handle, ("column_" + std::to_string(i)).c_str()));
}

TEST_F(WideSchemaTest, NamesOfAnyText) {
    std::vector<Column> columns;
    for (const std::string &name : {long_name, std::string(), std::string("a.b 'c' \"d\"\n\t"), std::string(127, 'x'),
                                    std::string(128, 'y'), std::string("\xf0\x9f\x98\x80"), long_name + "m"})
        columns.push_back(Column::int32(name, {static_cast<int32_t>(columns.size()), 0}));
    auto [handle, task] = attached();
    receive(handle, task, columns);
    for (size_t i = 0; i < columns.size(); i++)
        EXPECT_EQ(static_cast<int32_t>(i), first_value(handle, columns[i].name.c_str()));
}

TEST_F(WideSchemaTest, ArrowHasTheNamesAndTheColumns) {
    std::vector<Column> columns = numbered(5000);
    columns[4999].name = long_name;
    auto [handle, task] = attached();
    receive(handle, task, columns);
    ArrowSchema schema = {};
    ArrowArray array = {};
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, &schema, &array), handle);
    ASSERT_EQ(5000, schema.n_children);
    EXPECT_STREQ("column_4998", schema.children[4998]->name);
    EXPECT_EQ(long_name, schema.children[4999]->name);
    EXPECT_EQ(4999, static_cast<const int32_t *>(array.children[4999]->buffers[1])[0]);
    array.release(&array);
    schema.release(&schema);
}

TEST_F(WideSchemaTest, WhatContradictsItselfIsRefused) {
    using Entries = std::vector<schema_entry>;
    expect_refused([](Entries &, std::string &, uint32_t &bytes) { bytes = 383; }, {"schema_bytes is 383", "384"});
    expect_refused([](Entries &, std::string &, uint32_t &bytes) { bytes = SCHEMA_BYTES_MAX + 1; },
                   {"schema_bytes is 16777217", "16777216"});
    expect_refused([](Entries &, std::string &, uint32_t &bytes) { bytes += 1; }, {"schema_bytes", "ends before"});
    expect_refused([](Entries &entries, std::string &, uint32_t &) { entries[0].name_bytes = 60001; },
                   {"schema_entry.name_bytes of column 0", "not that of one of the texts"});
    expect_refused([](Entries &entries, std::string &, uint32_t &) { entries[0].name_bytes = 59999; },
                   {"schema_entry.name_bytes of column 0"});
    expect_refused([](Entries &entries, std::string &, uint32_t &) { entries[0].name_bytes = UINT32_MAX; },
                   {"schema_entry.name_bytes of column 0"});
    expect_refused([](Entries &entries, std::string &, uint32_t &) { entries[0].name_offset = 1; },
                   {"schema_entry.name_offset of column 0"});
    expect_refused([](Entries &entries, std::string &, uint32_t &) { entries[0].name_offset = UINT32_MAX; },
                   {"schema_entry.name_offset of column 0"});
    expect_refused([](Entries &, std::string &texts, uint32_t &) { texts[100] = '\0'; },
                   {"schema_entry.name_bytes of column 0"});
    expect_refused([](Entries &, std::string &texts, uint32_t &) { texts.back() = 'n'; },
                   {"schema_entry.name_bytes of column 0"});
    expect_refused([](Entries &entries, std::string &, uint32_t &) { entries[0].name[0] = 'n'; },
                   {"schema_entry.name of column 0"});
}

TEST_F(WideSchemaTest, MoreEntriesThanThereMayBe) {
    auto [handle, task] = attached();
    task.header().schema_bytes = SCHEMA_BYTES_MAX;
    task.header().schema_columns = SCHEMA_ENTRIES_MAX + 1;
    task.supply(BlockImage(numbered(3), 2));
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"schema_columns is 32769", "32768"}));
}

TEST_F(WideSchemaTest, ResultsHaveAsManyColumnsAndSuchNames) {
    std::vector<Column> columns = numbered(10000);
    columns[7].name = long_name;
    columns[8].name = "";
    columns[9999].name = "a.b\n\xf0\x9f\x98\x80";
    const ResultFile read = written(columns, 2);
    ASSERT_EQ(columns.size(), read.columns.size());
    EXPECT_GT(read.header.ring_offset, uint64_t{RING_OFFSET});
    for (size_t i = 0; i < columns.size(); i++) {
        ASSERT_EQ(columns[i].name, read.columns[i].name);
        ASSERT_EQ(bytes_of<int32_t>({static_cast<int32_t>(i)}), read.columns[i].values.at(0));
    }
}

} // namespace
} // namespace supply_test
