// Programs built with an older header, which lacks fields, and with a newer one, which has more.
#include <functional>

#include "in_place.h"
#include "rank.h"

extern "C" {
using other_header = const char *(const char *mapped_file, const char *request_pipe, const char *notification_pipe,
                                  void supply_elements(void *), void *context, const char *expected);
other_header run_with_older_header, run_with_newer_header;
}

namespace supply_test {
namespace {

class HeaderTest : public RankTest {
  protected:
    static constexpr const char *short_value = "abc";
    static constexpr const char *long_value = "longer than a view holds";

    /** A program gets two blocks with one Datum of that value. expected: as in other_header.c. */
    void expect_no_problem(other_header *run, const std::string &value, const char *expected) {
        std::unique_ptr<Task> task;
        std::function<void()> supply = [&] {
            task = std::make_unique<Task>(files);
            supply_blocks(*task, value);
        };
        const char *problem = run(
            files.mapped_file.c_str(), files.request_pipe.c_str(), files.notification_pipe.c_str(),
            [](void *opaque) { (*static_cast<std::function<void()> *>(opaque))(); }, &supply, expected);
        EXPECT_EQ(nullptr, problem) << problem;
    }

    void supply_blocks(Task &task, const std::string &value) const {
        const std::vector<Element> elements = {{"key", 7, 1, 1, static_cast<int32_t>(value.size()), false, value}};
        const std::vector<Column> columns =
            is_in_place ? datum_columns_in_place(1, value, value.size(), elements) : datum_columns(elements);
        task.write_schema(schema_of(columns));
        if (is_in_place) task.add_foreign_file(entry_of(folder.write("data.mdb", value)));
        for (int i = 0; i < 2; i++) task.supply(BlockImage(columns, 1));
    }

    bool is_in_place = false;
};

TEST_F(HeaderTest, AnOlderOne) { expect_no_problem(run_with_older_header, short_value, short_value); }

TEST_F(HeaderTest, ANewerOne) { expect_no_problem(run_with_newer_header, short_value, short_value); }

/* The older one has views, but not window_count: it reads the values that stand in their views. */
TEST_F(HeaderTest, AColumnOfViewsAndAnOlderOne) {
    is_in_place = true;
    expect_no_problem(run_with_older_header, short_value, short_value);
}

TEST_F(HeaderTest, AColumnOfWindowsAndAnOlderOne) {
    is_in_place = true;
    expect_no_problem(run_with_older_header, long_value, nullptr);
}

TEST_F(HeaderTest, AColumnOfViewsAndANewerOne) {
    is_in_place = true;
    expect_no_problem(run_with_newer_header, short_value, short_value);
}

TEST_F(HeaderTest, AColumnOfWindowsAndANewerOne) {
    is_in_place = true;
    expect_no_problem(run_with_newer_header, long_value, long_value);
}

} // namespace
} // namespace supply_test
