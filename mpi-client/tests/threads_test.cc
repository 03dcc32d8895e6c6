// "Different handles are independent": two ranks in one process, each in a thread of its own. For the thread sanitizer.
#include <thread>

#include "rank.h"

namespace supply_test {
namespace {

constexpr uint64_t blocks = 200;

class ThreadsTest : public RankTest {
  protected:
    PairFiles files_of(const std::string &name) const {
        return {folder.file(name + "-mapped"), folder.file(name + "-request"), folder.file(name + "-notification")};
    }

    /** A whole run of a rank; the elements it got, or the text of what went wrong. */
    static std::string consume(supply_options_t options, const PairFiles &files) {
        options.mapped_file = files.mapped_file.c_str();
        options.request_pipe = files.request_pipe.c_str();
        options.notification_pipe = files.notification_pipe.c_str();
        supply_t *supply;
        supply_status_t status = supply_open(&supply, &options);
        Handle handle(supply);
        if (status != SUPPLY_OK) return supply_error(supply);
        supply_datum_t datum;
        uint64_t elements = 0;
        while ((status = supply_next_datum(supply, &datum)) >= 0 && status != SUPPLY_END_OF_DATA) {
            if (status == SUPPLY_END_OF_EPOCH) continue;
            if (datum.height != static_cast<int32_t>(elements)) return "another element than the next one";
            elements++;
        }
        return status < 0 ? supply_error(supply) : std::to_string(elements);
    }

    static void feed(const PairFiles &files) {
        Task task(files);
        for (uint64_t i = 0; i < blocks; i++) supply_datums(task, 3 * i, 3);
        task.end_of_epoch(0);
        task.end_of_data(0);
        task.see_end();
    }
};

TEST_F(ThreadsTest, TwoHandlesInTwoThreadsDoNotMeet) {
    const PairFiles first = files_of("first"), second = files_of("second");
    std::string of_first, of_second;
    std::thread threads[] = {
        std::thread([&] { of_first = consume(options, first); }),
        std::thread([&] { of_second = consume(options, second); }),
        std::thread([&] { feed(first); }),
        std::thread([&] { feed(second); }),
    };
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(std::to_string(3 * blocks), of_first);
    EXPECT_EQ(std::to_string(3 * blocks), of_second);
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(ThreadsTest, FailuresOfTwoThreadsKeepTheirOwnTexts) {
    const PairFiles first = files_of("first"), second = files_of("second");
    options.timeout = 0.2;
    std::string of_first, of_second;
    std::thread threads[] = {
        std::thread([&] { of_first = consume(options, first); }),
        std::thread([&] { of_second = consume(options, second); }),
    };
    for (std::thread &thread : threads) thread.join();
    EXPECT_TRUE(says(of_first, {"no Spark task attached", first.mapped_file.c_str()}));
    EXPECT_TRUE(says(of_second, {"no Spark task attached", second.mapped_file.c_str()}));
}

} // namespace
} // namespace supply_test
