// Golden results: the rank writes them to the byte. Spark reads them.
#include "golden.h"
#include "result_file.h"
#include "result_rows.h"

extern "C" {
#include "api/handle.h"
#include "api/result.h"
}

namespace supply_test {
namespace {

class ResultGoldenTest : public RankTest {
  protected:
    uint64_t generation = 0;

    /** The pair of the golden files. A task of that run has attached. */
    Handle open_golden() {
        Handle handle(static_cast<supply_t *>(calloc(1, sizeof(struct supply))));
        struct settings settings = golden_settings(files);
        generation = settings.generation;
        EXPECT_EQ(SUPPLY_OK, supply__open_settings(handle.get(), &settings)) << supply_error(handle.get());
        mapped_file_header *header = handle->pair.mapped_file.header;
        header->run = 0x1112131415161718;
        header->task_pid = 4343;
        return handle;
    }

    void expect_golden_result(const char *name, const char *golden, const std::vector<Column> &columns, uint32_t rows) {
        Handle handle = open_golden();
        supply_result_t *result;
        const std::vector<supply_field_t> fields = fields_of(columns);
        ASSERT_EQ(SUPPLY_OK, supply_result_open(&result, handle.get(), name, fields.data(), int(fields.size())))
            << supply_result_error(result);
        EXPECT_NE(generation, result->file.header.generation) << "a result has its own";
        // Sealing writes the header again.
        result->file.header.generation = generation;
        const std::vector<supply_column_t> written = rows_of(columns, rows);
        ASSERT_EQ(SUPPLY_OK, supply_result_write(result, written.data(), int(written.size())))
            << supply_result_error(result);
        const std::string path = supply_result_path(result);
        ASSERT_EQ(SUPPLY_OK, supply_result_seal(result)) << supply_result_error(result);
        EXPECT_EQ(files.mapped_file + "." + name + ".result", path);
        const ResultFile read = read_result(path);
        EXPECT_EQ(4343u, read.header.task_pid);
        EXPECT_EQ(0x1112131415161718u, read.header.run);
        expect_golden(golden, read_file(path));
    }
};

TEST_F(ResultGoldenTest, ARankWritesItsGoldenResultToTheByte) {
    const std::vector<Column> columns = {
        Column::fixed("id", "l", bytes_of<int64_t>({10, 11, 12, 13, 14})),
        nullable(Column::fixed("score", "f", bytes_of<float>({0.5F, 0, -2, 1e30F, 4})), 5, {1}),
        nullable(Column::variable("label", "u", {"seven", "", "", "\xc3\xa9t\xc3\xa9", "x"}), 5, {2}),
        Column::bits("correct", {true, false, true, false, true}),
        Column::list("vector", "+w:3", "f", bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})),
        nullable(Column::fixed("day", "tdD", bytes_of<int32_t>({0, -1, 20000, 0, 5})), 5, {3}),
        Column::variable("key", "z", {"a/b\\\xff", "", std::string(2000, 'k'), std::string(2000, 'K'), "end"}),
    };
    expect_golden_result("predictions", "rank.predictions.result", columns, 5);
}

TEST_F(ResultGoldenTest, ARankWritesItsGoldenResultWithAWideSchemaToTheByte) {
    std::string name;
    for (int i = 0; i < 50; i++) name += "wide";
    expect_golden_result("wide", "rank.wide.result", {Column::int32("", {1, 2, 3}), Column::int32(name, {7, 8, 9})}, 3);
}

TEST_F(ResultGoldenTest, ARankWritesItsGoldenResultOfNestedColumnsToTheByte) {
    expect_golden_result("nested", "rank.nested.result", nested_columns(), 3);
}

TEST_F(ResultGoldenTest, ARankWithoutRowsWritesItsGoldenResultToTheByte) {
    expect_golden_result("empty", "rank.empty.result", {Column::fixed("id", "l", "")}, 0);
}

} // namespace
} // namespace supply_test
