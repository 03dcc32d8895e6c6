// Programs built with an older header, which lacks fields, and with a newer one, which has more.
#include "in_place.h"
#include "rank.h"

extern "C" {
using other_header = const char *(const char *mapped_file, const char *request_pipe, const char *notification_pipe,
                                  void supply_elements(void *), void *context);
other_header run_with_older_header, run_with_newer_header;
}

namespace supply_test {
namespace {

class HeaderTest : public RankTest {
  protected:
    void expect_no_problem(other_header *run) {
        std::unique_ptr<Task> task;
        std::pair<HeaderTest *, std::unique_ptr<Task> *> context{this, &task};
        const char *problem = run(
            files.mapped_file.c_str(), files.request_pipe.c_str(), files.notification_pipe.c_str(),
            [](void *opaque) {
                auto &[test, task] = *static_cast<decltype(context) *>(opaque);
                *task = std::make_unique<Task>(test->files);
                const std::vector<Element> elements = {{"key", 7, 1, 1, 3, false, "abc"}};
                const std::vector<Column> columns =
                    test->is_in_place ? datum_columns_in_place(1, "abc", 3, elements) : datum_columns(elements);
                (*task)->write_schema(schema_of(columns));
                (*task)->supply(BlockImage(columns, 1));
                (*task)->supply(BlockImage(columns, 1));
            },
            &context);
        EXPECT_EQ(nullptr, problem) << problem;
    }

    bool is_in_place = false;
};

TEST_F(HeaderTest, AnOlderOne) { expect_no_problem(run_with_older_header); }

TEST_F(HeaderTest, ANewerOne) { expect_no_problem(run_with_newer_header); }

TEST_F(HeaderTest, AColumnOfViewsAndAnOlderOne) {
    is_in_place = true;
    expect_no_problem(run_with_older_header);
}

TEST_F(HeaderTest, AColumnOfViewsAndANewerOne) {
    is_in_place = true;
    expect_no_problem(run_with_newer_header);
}

} // namespace
} // namespace supply_test
