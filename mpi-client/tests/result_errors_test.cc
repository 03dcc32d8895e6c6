// Results: calls that are refused, and what they leave.
#include "result_rows.h"

namespace supply_test {
namespace {

class ResultErrorsTest : public ResultTest {
  protected:
    void expect_refused(const std::vector<Column> &columns, const std::string &name,
                        std::initializer_list<const char *> words) {
        Result refused = begin(handle, columns, name, SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(supply_result_error(refused.get()), words));
        EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_seal(refused.get()));
    }
    void expect_not_written(const std::vector<Column> &columns, uint32_t count,
                            std::initializer_list<const char *> words) {
        write(result, columns, count, SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(supply_result_error(result.get()), words));
    }

    Handle handle = open();
    const std::vector<Column> good = {Column::int32("id", {1, 2}),
                                      nullable(Column::variable("text", "u", {"a", "b"}), 2, {1}),
                                      Column::bits("flag", {true, false})};
    Result result = begin(handle, good);
};

TEST_F(ResultErrorsTest, NamesAndFieldsAreChecked) {
    for (const char *name : {"", "a.b", ".a", "a/b", "..", "a b", "\xc3\xa9"})
        expect_refused(good, name, {"cannot be its name", "A-Z a-z 0-9 _ -"});
    expect_refused(good, std::string(65, 'x'), {"cannot be its name", "1 to 64"});
    begin(handle, good, std::string(64, 'x'));
    expect_refused({}, "r", {"0 columns", "1 to 32768"});
    expect_refused(std::vector<Column>(32769, good[0]), "r", {"32769 columns"});
    expect_refused({good[0], good[0]}, "r", {"two columns 'id'"});
    expect_refused({Column::int32("", {}), Column::int32("", {})}, "r", {"two columns ''"});
    expect_refused({Column::int32(std::string(65536, 'n'), {})}, "r", {"column 0", "65536 bytes", "at most 65535"});
    for (const char *format :
         {"", "U", "vu", "vz", "+vl", "+w:0", "tdm", "tsn:", "w:4", "long format of no type at all"})
        expect_refused({Column::fixed("x", format, "")}, "r", {"column 'x'", format, "convert it"});
    expect_refused({Column::list("x", "+w:2", "u", "")}, "r", {"column 'x'", "+w:2", "of u"});
    expect_refused({Column::list("x", "i", "f", "")}, "r", {"column 'x'", "of f"});
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_open(nullptr, handle.get(), "r", nullptr, 0));
}

TEST_F(ResultErrorsTest, RowsThatAreWrongChangeNothing) {
    write(result, good, 2);
    expect_not_written({good[0], good[1]}, 2, {"2 columns", "3"});
    expect_not_written({Column::fixed("id", "l", std::string(16, ' ')), good[1], good[2]}, 2, {"'id'", "'i'", "'l'"});
    expect_not_written({nullable(good[0], 2, {1}), good[1], good[2]}, 2,
                       {"'id'", "not nullable", "row 1", "make it nullable"});
    expect_not_written({Column::int32("id", {1}), good[1], good[2]}, 2, {"'id'", "4 bytes", "needs 8"});
    Column decreasing = good[1];
    decreasing.offsets = {0, 2, 1};
    expect_not_written({good[0], decreasing, good[2]}, 2, {"'text'", "never decrease"});
    decreasing.offsets = {0, 1, 3};
    expect_not_written({good[0], decreasing, good[2]}, 2, {"'text'", "within its data"});
    decreasing.offsets = {-1, 1, 1};
    expect_not_written({good[0], decreasing, good[2]}, 2, {"'text'", "0 or above"});
    decreasing.offsets = {};
    expect_not_written({good[0], decreasing, good[2]}, 2, {"'text'", "no offsets"});
    std::vector<supply_column_t> uneven = rows_of(good, 2);
    uneven[1].element_count = 1;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_write(result.get(), uneven.data(), 3));
    EXPECT_TRUE(says(supply_result_error(result.get()), {"'text' has 1", "'id' has 2"}));
    uneven = rows_of(good, 2);
    uneven[0].data = nullptr;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_write(result.get(), uneven.data(), 3));
    EXPECT_TRUE(says(supply_result_error(result.get()), {"'id'", "0 bytes"}));

    write(result, good, 2);
    seal(result);
    EXPECT_EQ(4u, read_result(path()).header.epoch_elements);
}

TEST_F(ResultErrorsTest, ABitmapWithoutZerosIsNoNull) {
    write(result, {nullable(good[0], 2, {}), good[1], good[2]}, 2);
    seal(result);
    EXPECT_EQ(0u, read_result(path()).columns[0].null_count);
}

TEST_F(ResultErrorsTest, ARowLargerThanABlockNamesTheColumnAndSpoilsTheResult) {
    const std::vector<Column> large = {Column::int32("id", {1, 2}),
                                       nullable(Column::variable("text", "u", {"a", std::string(9000, 'x')}), 2, {}),
                                       good[2]};
    write(result, large, 2, SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_result_error(result.get()),
                     {"'scores'", "row 1", "8192 bytes", "'text' has 9000 bytes", "block=", "options"}));
    write(result, good, 2, SUPPLY_ERROR_CONFIG);
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, supply_result_seal(result.get()));
    EXPECT_TRUE(says(supply_result_error(result.get()), {"row 1", "9000"}));
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ResultErrorsTest, MoreColumnsThanABlockDescribesAreRefused) {
    options.block_bytes = 4096;
    options.ring_bytes = 2 * 4096;
    result.reset();
    handle.reset();
    handle = open();
    std::vector<Column> columns;
    for (int i = 0; i < 124; i++) columns.push_back(Column::int32("c" + std::to_string(i), {}));
    Result refused = begin(handle, columns, "r", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_result_error(refused.get()), {"124 columns", "4096 bytes", "block="}));
    columns.resize(120);
    begin(handle, columns, "r");
}

TEST_F(ResultErrorsTest, APairThatIsNotOpenHasNoResults) {
    supply_result_t *opened;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_open(&opened, nullptr, "r", fields_of(good).data(), 3));
    EXPECT_TRUE(says(supply_result_error(opened), {"pair is not open"}));
    EXPECT_EQ(SUPPLY_OK, supply_result_abort(opened, nullptr));
    EXPECT_EQ(SUPPLY_OK, supply_result_abort(nullptr, nullptr));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_seal(nullptr));
    EXPECT_EQ(0u, supply_result_rows(nullptr));
    EXPECT_STREQ("", supply_result_path(nullptr));
    EXPECT_NE(nullptr, supply_result_error(nullptr));
    EXPECT_EQ(0, supply_result_error_errno(nullptr));
}

} // namespace
} // namespace supply_test
