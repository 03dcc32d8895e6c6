// The exchange over a real MPI, fed by tasks of the test.
#include <thread>

#include "mpirun.h"
#include "process.h"
#include "rank.h"

namespace supply_test {
namespace {

class ExchangeMpiTest : public ::testing::Test {
  protected:
    static constexpr uint32_t block_elements = 20, epochs = 2;

    void create(size_t ranks, const std::string &timeout = "60") {
        std::string mapped, pipes;
        for (size_t i = 0; i < ranks; i++) {
            const std::string name = folder.file("pair-" + std::to_string(i));
            pairs.push_back({name, name + ".request", name + ".notification"});
            mapped += name + " ring=64KiB block=16KiB\n";
            pipes += name + ".request " + name + ".notification\n";
        }
        environment = {"SUPPLY_MAPPED_FILES=" + folder.write("mapped-files.conf", mapped),
                       "SUPPLY_NAMED_PIPES=" + folder.write("named-pipes.conf", pipes), "SUPPLY_TIMEOUT=" + timeout};
    }

    /** Supplies blocks of Datums, numbered from `first`. */
    static void feed(const PairFiles &files, uint32_t first, uint32_t blocks) {
        Task task(files);
        task.write_schema(schema_of(datum_columns({numbered_element(0)})));
        for (uint32_t epoch = 0; epoch < epochs; epoch++) {
            for (uint32_t block = 0; block < blocks; block++) {
                std::vector<Element> elements;
                for (uint32_t i = 0; i < block_elements; i++)
                    elements.push_back(numbered_element(first + block * block_elements + i, 50 + i));
                task.supply(datum_block(elements), epoch, 0, uint64_t{block} * block_elements);
            }
            task.end_of_epoch(epoch);
        }
        task.end_of_data(epochs - 1);
        task.see_end();
    }

    /** Runs the ranks. Rank r supplies blocks[r] blocks; all elements together are numbered from 0. */
    Ended run(const std::vector<std::string> &program, const std::vector<uint32_t> &blocks) {
        create(blocks.size());
        Process ranks(mpirun(static_cast<int>(blocks.size()), program), folder.path(), environment);
        std::vector<std::thread> tasks;
        uint32_t first = 0;
        for (size_t i = 0; i < blocks.size(); i++) {
            tasks.emplace_back(feed, pairs[i], first, blocks[i]);
            first += blocks[i] * block_elements;
        }
        for (std::thread &task : tasks) task.join();
        return ranks.wait();
    }

    static void expect_once(const Ended &ended, uint64_t elements) {
        const std::string received = std::to_string(elements) + " elements, sum " +
                                     std::to_string(elements * (elements - 1) / 2) + ", squares " +
                                     std::to_string((elements - 1) * elements * (2 * elements - 1) / 6) + "\n";
        EXPECT_EQ(0, ended.exit_status) << ended.err;
        EXPECT_EQ("epoch 0: " + received + "epoch 1: " + received, ended.out);
    }

    TemporaryFolder folder;
    std::vector<PairFiles> pairs;
    std::vector<std::string> environment;
};

TEST_F(ExchangeMpiTest, OneRank) { expect_once(run({SUPPLY_TEST_EXCHANGE_IDS, "all", "4000"}, {10}), 200); }

TEST_F(ExchangeMpiTest, TwoRanks) { expect_once(run({SUPPLY_TEST_EXCHANGE_IDS, "all", "9000"}, {20, 20}), 800); }

TEST_F(ExchangeMpiTest, UnequalRanks) {
    expect_once(run({SUPPLY_TEST_EXCHANGE_IDS, "balance", "5000"}, {0, 25, 3}), 560);
}

TEST_F(ExchangeMpiTest, FourRanksGroup) {
    expect_once(run({SUPPLY_TEST_EXCHANGE_IDS, "hash", "3000"}, {9, 8, 7, 11}), 700);
}

TEST_F(ExchangeMpiTest, ARankThatNeverComes) {
    create(2, "1");
    const Ended ended =
        Process(mpirun(2, {SUPPLY_TEST_EXCHANGE_IDS, "absent", "4000"}), folder.path(), environment).wait();
    EXPECT_TRUE(says(ended.out, {"SUPPLY_ERROR_TIMEOUT", "supply_exchange_open()", "2 s"})) << ended.err;
}

} // namespace
} // namespace supply_test
