// Feeders and the ranks that they supply, over a real MPI.
#include <csignal>

#include "fed_ranks.h"
#include "mpirun.h"

namespace supply_test {
namespace {

class RemoteMpiTest : public ::testing::Test {
  protected:
    RemoteMpiTest() { signal(SIGPIPE, SIG_IGN); }

    static std::vector<std::string> command(int feeders, int ranks, const std::string &mode) {
        std::vector<std::string> command = mpirun(feeders, {SUPPLY_TEST_FEEDER, ":", "-n", std::to_string(ranks)});
        command.insert(command.end(), {SUPPLY_TEST_REMOTE_IDS, mode});
        return command;
    }

    static void expect_all(int feeders, int ranks, const std::vector<uint32_t> &blocks, const std::string &mode,
                           bool are_lists = false) {
        FedRanks fed(blocks.size());
        fed.data.are_lists = are_lists;
        const Ended ended = fed.run(command(feeders, ranks, mode), blocks);
        uint64_t elements = 0;
        for (const uint32_t count : blocks) elements += uint64_t{count} * fed.data.block_elements;
        EXPECT_EQ(0, ended.exit_status) << ended.err;
        EXPECT_EQ(fed.all_epochs(elements) + "closed\n", ended.out) << ended.err;
    }
};

TEST_F(RemoteMpiTest, OneFeederOneRank) { expect_all(1, 1, {10}, "read"); }

TEST_F(RemoteMpiTest, MoreRanksThanFeeders) { expect_all(2, 3, {10, 4, 7}, "read"); }

TEST_F(RemoteMpiTest, MoreFeedersThanRanks) { expect_all(3, 2, {10, 0, 7}, "read"); }

TEST_F(RemoteMpiTest, ExchangeOfWhatFeedersSend) { expect_all(1, 2, {10, 10}, "exchange"); }

TEST_F(RemoteMpiTest, BlocksWithChildren) {
    expect_all(1, 2, {10, 4}, "read", true);
    expect_all(1, 2, {10, 4}, "exchange", true);
}

/* A pair of which feeders open several has no position inside an epoch. What the ranks sort has one. */
TEST_F(RemoteMpiTest, SortedElementsOfSeveralFeedersHavePositions) {
    FedRanks fed(2);
    const Ended ended = fed.run(command(2, 1, "sorted"), {5, 5});
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    for (const char *epoch : {"0", "1"}) {
        const std::string start = std::string("position position-1:") + epoch + ":0:0:0:0000000000000000:exchange:0:";
        EXPECT_NE(std::string::npos, ended.out.find(start)) << ended.out;
    }
}

TEST_F(RemoteMpiTest, AForkedChildThatClosesItsCopyDisturbsNobody) { expect_all(2, 2, {4, 4}, "child"); }

TEST_F(RemoteMpiTest, ARankThatForgetsToCloseEndsWell) { expect_all(1, 2, {10, 4}, "forget"); }

TEST_F(RemoteMpiTest, FeedersServeOnce) {
    FedRanks fed(1);
    const Ended ended = fed.run(command(1, 1, "twice"), {2});
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(says(ended.out, {"again: SUPPLY_ERROR_ARGUMENT", "can do so once"}));
}

TEST_F(RemoteMpiTest, AReportOfASlowSparkIsOutOfDateAfterAGap) {
    FedRanks fed(1, "0.5");
    const Ended ended = fed.run(command(1, 1, "gap"), {});
    EXPECT_TRUE(says(ended.out, {"after the gap: no failure"})) << ended.err;
}

TEST_F(RemoteMpiTest, ResumesInsideAnEpoch) {
    FedRanks first(1), second(1);
    const Ended whole = first.run(command(1, 1, "position"), {5});
    const std::string position = "position ";
    size_t at = 0;
    for (int blocks = 0; blocks < 3; blocks++) at = whole.out.find(position, at) + position.size();
    ASSERT_NE(position.size() - 1, at) << whole.err;
    const std::string text = whole.out.substr(at, whole.out.find('\n', at) - at);
    const Ended rest = second.run(command(1, 1, "position=" + text), {5});
    EXPECT_EQ(0, rest.exit_status) << rest.err;
    EXPECT_TRUE(says(rest.out, {"epoch 0: 40 elements, sum 3180,", "epoch 1: 100 elements, sum 4950,", "closed"}));
    /* The same blocks as of the whole run, with the same positions. */
    EXPECT_NE(std::string::npos, whole.out.find(rest.out.substr(0, rest.out.find("epoch 0")))) << rest.out;
}

TEST_F(RemoteMpiTest, InsideAnEpochSeveralPairsHaveNoPosition) {
    FedRanks fed(2);
    const Ended ended = fed.run(command(2, 1, "position=position-1:0:1:0:20:0000000000000000"), {});
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"SUPPLY_ERROR_ARGUMENT", "inside an epoch", "more feeders than ranks"}));
}

TEST_F(RemoteMpiTest, AFeederWithoutConfigFiles) {
    FedRanks fed(1);
    fed.environment[0] = "SUPPLY_MAPPED_FILES=/nonexistent.conf";
    const Ended ended = fed.run(command(1, 1, "read"), {});
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"rank 0: SUPPLY_ERROR_CONFIG: node ", "/nonexistent.conf"}));
}

TEST_F(RemoteMpiTest, NoRankAmongTheProcesses) {
    FedRanks fed(1);
    const Ended ended = fed.run(mpirun(2, {SUPPLY_TEST_FEEDER}), {});
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-feeder: all processes of the communicator are feeders", "mpirun -n 4"}));
}

TEST_F(RemoteMpiTest, AWaitForTheSchemaReceivesNothing) { expect_all(2, 3, {10, 4, 7}, "schema"); }

TEST_F(RemoteMpiTest, SparkFails) {
    for (const char *mode : {"read", "schema"}) {
        FedRanks fed(1);
        Process ranks(command(1, 1, mode), fed.folder.path(), fed.environment);
        Task task(fed.files[0]);
        task.send_failure("the source is gone");
        const Ended ended = ranks.wait();
        EXPECT_NE(0, ended.exit_status);
        EXPECT_TRUE(says(ended.err, {"rank 0: SUPPLY_ERROR_SPARK: node ", "the source is gone"})) << mode;
    }
}

TEST_F(RemoteMpiTest, SparkNeverComes) {
    FedRanks fed(1, "1");
    const Ended ended = fed.run(command(1, 1, "read"), {});
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"rank 0: SUPPLY_ERROR_TIMEOUT: node ", "no Spark task attached to pair 0", "1 s"}));
}

TEST_F(RemoteMpiTest, ValuesInPlaceAreRefused) {
    FedRanks fed(1);
    Process ranks(command(1, 1, "read"), fed.folder.path(), fed.environment);
    Task task(fed.files[0]);
    task.write_schema(schema_of({Column::views("data", {}, {})}));
    const Ended ended = ranks.wait();
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"rank 0: SUPPLY_ERROR_ARGUMENT: node ", "without --in-place"}));
}

/** The reason of the rank reaches the task. */
class LeavingRank : public RemoteMpiTest, public ::testing::WithParamInterface<const char *> {};

TEST_P(LeavingRank, SparkLearnsWhy) {
    FedRanks fed(1);
    Process ranks(command(1, 1, GetParam()), fed.folder.path(), fed.environment);
    Task task(fed.files[0]);
    task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    try {
        for (uint64_t block = 0; block < 3; block++) task.supply(datum_block({numbered_element(block)}), 0, 0, block);
    } catch (const std::runtime_error &) {
        /* The rank leaves after its first block, and may be faster than this loop. */
    }
    wait_until("the rank's end", [&] {
        task.requests();
        return task.rank_has_left();
    });
    const bool stops = std::string(GetParam()) != "early";
    EXPECT_TRUE(says(task.header().rank_failure,
                     {stops ? "the test stops this rank" : "rank 0 closed its pair before the end of data"}));
    EXPECT_TRUE(says(ranks.wait().out, {"rank 0 has closed its pair"}));
}

INSTANTIATE_TEST_SUITE_P(Ways, LeavingRank, ::testing::Values("stop", "early", "interrupted"),
                         [](const auto &info) { return std::string(info.param); });

/** A stream that is stopped when one of two pairs has given the whole batch. */
class StoppedStream : public RemoteMpiTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(StoppedStream, EndsInTheMiddleOfABatch) {
    FedRanks fed(2, "2");
    Process ranks(command(2, 1, "read"), fed.folder.path(), fed.environment);
    Task whole(fed.files[GetParam()]), stopped(fed.files[1 - GetParam()]);
    for (Task *task : {&whole, &stopped}) {
        task->write_schema(schema_of(datum_columns({numbered_element(0)})));
        task->supply(datum_block({numbered_element(0)}), 0, 0, 0);
    }
    whole.end_of_epoch(0);
    for (Task *task : {&stopped, &whole}) task->end_of_data(0);
    for (Task *task : {&stopped, &whole}) task->see_end();
    const Ended ended = ranks.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ("closed\n", ended.out);
}

INSTANTIATE_TEST_SUITE_P(Pairs, StoppedStream, ::testing::Values(0, 1));

/** One of two pairs has nothing yet. */
class SlowPair : public RemoteMpiTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(SlowPair, DoesNotHoldUpTheOther) {
    FedRanks fed(2);
    Process ranks(command(2, 1, "read"), fed.folder.path(), fed.environment);
    Task slow(fed.files[GetParam()]), fast(fed.files[1 - GetParam()]);
    for (Task *task : {&slow, &fast}) task->write_schema(schema_of(datum_columns({numbered_element(0)})));
    const uint64_t blocks = 3 * fast.header().block_count;
    for (uint64_t block = 0; block < blocks; block++) fast.supply(datum_block({numbered_element(block)}), 0, 0, block);
    wait_until("the last release", [&] { return fast.released() == blocks; });
    for (Task *task : {&slow, &fast}) {
        task->end_of_epoch(0);
        task->end_of_data(0);
    }
    for (Task *task : {&slow, &fast}) task->see_end();
    const Ended ended = ranks.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    fed.data.epochs = 1;
    EXPECT_EQ(fed.all_epochs(blocks) + "closed\n", ended.out);
}

/* Positions in an exchange need the same order in each run. */
TEST_P(SlowPair, IsAwaitedIfTheProgramMayExchange) {
    FedRanks fed(2);
    Process ranks(command(2, 1, "turns"), fed.folder.path(), fed.environment);
    const auto slow = static_cast<uint32_t>(GetParam());
    Task pairs[] = {Task(fed.files[0]), Task(fed.files[1])};
    for (Task &task : pairs) task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    for (const uint32_t pair : {1 - slow, slow}) {
        for (uint64_t block = 0; block < 3; block++)
            pairs[pair].supply(datum_block({numbered_element(block)}), 0, pair, block);
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    for (Task &task : pairs) {
        task.end_of_epoch(0);
        task.end_of_data(0);
    }
    for (Task &task : pairs) task.see_end();
    const Ended ended = ranks.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    const std::string turn = "partition 0\npartition 1\n";
    EXPECT_EQ(0, ended.out.find(turn + turn + turn + "epoch 0: 6 elements")) << ended.out;
}

INSTANTIATE_TEST_SUITE_P(Pairs, SlowPair, ::testing::Values(0, 1));

TEST_F(RemoteMpiTest, ADeadRankEndsTheJobAndThePair) {
    FedRanks fed(1);
    Process ranks(command(1, 1, "leave"), fed.folder.path(), fed.environment);
    Task task(fed.files[0]);
    task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    task.supply(datum_block({numbered_element(0)}), 0, 0, 0);
    wait_until("the rank's end", [&] {
        task.requests();
        return task.rank_has_left();
    });
    EXPECT_NE(0, ranks.wait().exit_status);
}

TEST_F(RemoteMpiTest, ASuspendedFeederIsNamed) {
    FedRanks fed(1, "1");
    Process ranks(command(1, 1, "read"), fed.folder.path(), fed.environment);
    Task task(fed.files[0]);
    const pid_t feeder = static_cast<pid_t>(task.header().rank_pid);
    task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    task.supply(datum_block({numbered_element(0)}), 0, 0, 0);
    wait_until("the first block's release", [&] { return task.released() == 1; });
    ASSERT_EQ(0, kill(feeder, SIGSTOP));
    const Ended ended = ranks.wait();
    kill(feeder, SIGCONT);
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"rank 0: SUPPLY_ERROR_TIMEOUT", "supply-feeder on node ", "is it stopped"}));
}

TEST_F(RemoteMpiTest, WithoutFeedersEachRankHasItsPair) {
    FedRanks fed(2);
    const Ended ended = fed.run(mpirun(2, {SUPPLY_TEST_REMOTE_IDS, "read"}), {3, 4});
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ(fed.all_epochs(140) + "closed\n", ended.out);
}

} // namespace
} // namespace supply_test
