/** Rows that a test writes to a result. */
#pragma once

#include <memory>
#include <vector>

#include "block_image.h"
#include "rank.h"
#include "result_file.h"
#include "supply_result.h"

namespace supply_test {

/** Aborts the result, unless it was sealed and released. */
struct AbortResult {
    void operator()(supply_result_t *result) const { supply_result_abort(result, "the test has ended"); }
};
using Result = std::unique_ptr<supply_result_t, AbortResult>;

/** Fields of the columns; a column with a bitmap is nullable. */
std::vector<supply_field_t> fields_of(const std::vector<Column> &columns);

/** The columns with their children as a program passes them. They point into `columns`. */
std::vector<supply_column_t> rows_of(const std::vector<Column> &columns, uint32_t count);

/** The column with a bitmap in which the listed rows are null. */
Column nullable(Column column, uint32_t count, const std::vector<uint32_t> &nulls);

/** Three rows of five columns: tokens, point, counts, pairs and last. */
std::vector<Column> nested_columns();

/** Results of an open pair. */
class ResultTest : public RankTest {
  protected:
    /** Begins a result with the fields of the columns. Returns a handle even if that fails. */
    static Result begin(const Handle &handle, const std::vector<Column> &columns, const std::string &name = "scores",
                        supply_status_t expected = SUPPLY_OK);
    static void write(const Result &result, const std::vector<Column> &columns, uint32_t count,
                      supply_status_t expected = SUPPLY_OK);
    static void seal(Result &result);

    /** Begins, writes and seals a result, and reads it back. */
    ResultFile written(const std::vector<Column> &columns, uint32_t count);

    /** The path of a sealed result of the pair. */
    std::string path(const std::string &name = "scores") const { return files.mapped_file + "." + name + ".result"; }
};

/** The values as bytes. */
template <typename Number>
std::string bytes_of(const std::vector<Number> &values) {
    return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(Number));
}

} // namespace supply_test
