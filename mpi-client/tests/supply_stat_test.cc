// supply-stat: the states of a pair from its start to its end.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stat_test.h"

namespace supply_test {
namespace {

class SupplyStatTest : public StatTest {
  protected:
    /** Checks how many blocks are in the ring, and which side waits ("": none). */
    static void expect_ring(const Json &pair, int blocks, const char *waiting) {
        EXPECT_EQ(blocks, pair["blocks_in_ring"].number());
        EXPECT_EQ(4, pair["ring_blocks"].number());
        EXPECT_EQ(waiting, pair["waiting"].text());
        EXPECT_EQ(*waiting == '\0', pair["waiting_seconds"].is_null());
    }
};

TEST_F(SupplyStatTest, ARankWithoutATask) {
    EXPECT_EQ("absent", snapshot()["state"].text());
    Handle handle = open_rank();
    const Json pair = snapshot();
    EXPECT_EQ("open", pair["state"].text());
    EXPECT_EQ(pairs[0].mapped_file, pair["mapped_file"].text());
    EXPECT_EQ(0, pair["pair"].number());
    EXPECT_EQ(5, pair["rank"].number());
    EXPECT_EQ(getpid(), pair["rank_pid"].number());
    EXPECT_EQ(0, pair["elements"].number());
    for (const char *unknown : {"task_pid", "task_attempt", "epoch", "partition", "text"})
        EXPECT_TRUE(pair[unknown].is_null()) << unknown;
    expect_ring(pair, 0, "rank");
}

TEST_F(SupplyStatTest, ATaskThatSuppliesAndLeaves) {
    Handle handle = open_rank();
    {
        Task task(pairs[0], 2);
        expect_ring(snapshot(), 0, "rank");
        supply_datums(task, 100, 3, 7);
        const Json pair = snapshot();
        EXPECT_EQ("supplying", pair["state"].text());
        EXPECT_EQ(3, pair["epoch"].number());
        EXPECT_EQ(7, pair["partition"].number());
        EXPECT_EQ(110, pair["elements"].number());
        EXPECT_LT(1000, pair["bytes"].number());
        EXPECT_EQ(getpid(), pair["task_pid"].number());
        EXPECT_EQ(2, pair["task_attempt"].number());
        expect_ring(pair, 1, "");
        for (uint64_t i = 1; i < 4; i++) supply_datums(task, 100 + 10 * i);
        expect_ring(snapshot(), 4, "task");
    }
    EXPECT_EQ("paused", snapshot()["state"].text());
    expect_ring(snapshot(), 4, "");
    supply_block_t block;
    for (int i = 0; i < 4; i++) {
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        supply_release(handle.get(), &block);
    }
    EXPECT_EQ("paused", snapshot()["state"].text());
    expect_ring(snapshot(), 0, "rank");
}

TEST_F(SupplyStatTest, TheCountsOfAnEpoch) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    supply_datums(task, 0);
    EXPECT_TRUE(snapshot()["epoch_elements"].is_null());
    task.header().epoch_elements = 60;
    __atomic_store_n(&task.header().counts_known, 1, __ATOMIC_RELEASE);
    Json pair = snapshot();
    EXPECT_EQ(60, pair["epoch_elements"].number());
    EXPECT_TRUE(pair["epoch_steps"].is_null());
    task.header().epoch_steps = 6;
    EXPECT_EQ(6, snapshot()["epoch_steps"].number());
}

TEST_F(SupplyStatTest, TheExchange) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    EXPECT_TRUE(snapshot()["exchange"].is_null());
    EXPECT_TRUE(snapshot()["exchange_fraction"].is_null());
    task.header().exchange = EXCHANGE_ALL;
    task.header().exchange_fraction = EXCHANGE_FRACTION_UNIT / 4;
    EXPECT_EQ("all", snapshot()["exchange"].text());
    EXPECT_EQ(0.25, snapshot()["exchange_fraction"].number());
    task.header().exchange = 9;
    EXPECT_EQ("unknown", snapshot()["exchange"].text());
}

TEST_F(SupplyStatTest, WhatAnExchangeHasDone) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    EXPECT_TRUE(snapshot()["exchange_totals"].is_null());
    EXPECT_EQ(std::string::npos, run(SUPPLY_TEST_STAT).out.find("exchange"));
    struct exchange_totals &totals = task.header().exchange_totals;
    totals = {16, 3, 8, 8000000, 120, 121, 480, 1500000000, 4500000000, 1100000000, 2200000000, 3300000000, 4400000000};
    const Json json = snapshot()["exchange_totals"];
    const struct {
        const char *name;
        double value;
    } expected[] = {{"ranks", 16},
                    {"copying_ranks", 3},
                    {"forwarded_ranks", 8},
                    {"window_bytes", 8000000},
                    {"windows", 120},
                    {"rounds", 121},
                    {"collectives", 480},
                    {"copied_bytes", 1500000000},
                    {"sent_bytes", 4500000000},
                    {"gathering_seconds", 1.1},
                    {"agreeing_seconds", 2.2},
                    {"copying_seconds", 3.3},
                    {"sending_seconds", 4.4}};
    for (const auto &[name, value] : expected) EXPECT_EQ(value, json[name].number()) << name;
    EXPECT_TRUE(says(run(SUPPLY_TEST_STAT).out,
                     {"exchange of 16 ranks: copies to 3, sends to 4, through two levels to 8; 120 windows of 8.0 MB, "
                      "121 rounds, 480 collectives; copied 1.500 GB, sent 4.500 GB; 1.1 s gathering, 2.2 s agreeing, "
                      "3.3 s copying, 4.4 s sending"}));
}

TEST_F(SupplyStatTest, TheEndOfTheData) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    supply_datums(task, 0, 4);
    task.end_of_data(4);
    Json pair = snapshot();
    EXPECT_EQ("ending", pair["state"].text());
    EXPECT_EQ(4, pair["epoch"].number());
    EXPECT_TRUE(pair["partition"].is_null()) << "an end lies in no partition";
    expect_ring(pair, 2, "task");
    supply_datum_t datum;
    while (supply_next_datum(handle.get(), &datum) == SUPPLY_OK) {
    }
    pair = snapshot();
    EXPECT_EQ("ending", pair["state"].text());
    expect_ring(pair, 0, "rank");
    task.see_end();
    pair = snapshot();
    EXPECT_EQ("ended", pair["state"].text());
    expect_ring(pair, 0, "");
}

TEST_F(SupplyStatTest, BlocksBetweenTwoSnapshotsGiveARate) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    supply_datums(task, 0);
    Process stat(command(SUPPLY_TEST_STAT, {"--json", "--interval", "0.02"}), folder.path());
    const auto seen = [&](const char *words) {
        wait_until(words, [&] { return stat.output().find(words) != std::string::npos; });
    };
    seen("\"elements\":10,");
    EXPECT_EQ(std::string::npos, stat.output().find("\"elements\":20,"));
    supply_datums(task, 10);
    seen("\"elements\":20,");
    stat.signal(SIGINT);
    const Ended ended = stat.wait();
    EXPECT_EQ(128 + SIGINT, ended.exit_status);
    int risen = 0, still = 0;
    for (size_t begin = 0, end; (end = ended.out.find('\n', begin)) != std::string::npos; begin = end + 1) {
        const Json pair = Json(ended.out.substr(begin, end - begin))["pairs"][size_t{0}];
        (pair["elements_per_second"].number() > 0 ? risen : still)++;
        EXPECT_EQ(pair["elements_per_second"].number() > 0, pair["bytes_per_second"].number() > 0);
    }
    EXPECT_EQ(1, risen);
    EXPECT_LT(0, still);
}

TEST_F(SupplyStatTest, TheTimesOfThePipesGiveTheWaitingTime) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    const auto written_an_hour_ago = [](const std::string &pipe, time_t more) {
        const struct timespec times[] = {{0, UTIME_NOW}, {time(nullptr) - 3600 - more, 0}};
        ASSERT_EQ(0, utimensat(AT_FDCWD, pipe.c_str(), times, 0));
    };
    written_an_hour_ago(pairs[0].request_pipe, 0);
    written_an_hour_ago(pairs[0].notification_pipe, 1000);
    const double seconds = snapshot()["waiting_seconds"].number();
    EXPECT_LE(3600, seconds);
    EXPECT_GT(4600, seconds) << "the later of the two counts";
    /* After a change has been seen, the wait is not longer than the time since then. */
    Process stat(command(SUPPLY_TEST_STAT, {"--json", "--interval", "0.02"}), folder.path());
    const auto seen = [&](const char *words) {
        wait_until(words, [&] { return stat.output().find(words) != std::string::npos; });
    };
    seen("\"waiting\":\"rank\"");
    for (uint64_t i = 0; i < 4; i++) supply_datums(task, 10 * i);
    written_an_hour_ago(pairs[0].request_pipe, 0);
    written_an_hour_ago(pairs[0].notification_pipe, 0);
    const size_t before = stat.output().size();
    wait_until("later snapshots", [&] { return stat.output().size() > before + 2000; });
    stat.signal(SIGTERM);
    const std::string lines = stat.wait().out;
    const size_t end = lines.rfind('\n');
    const Json last = Json(lines.substr(lines.rfind('\n', end - 1) + 1))["pairs"][size_t{0}];
    EXPECT_EQ("task", last["waiting"].text());
    EXPECT_GT(3600, last["waiting_seconds"].number());
}

TEST_F(SupplyStatTest, ValuesInPlaceCountAsBytes) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    supply_datums(task, 0);
    const Json copied = snapshot();
    EXPECT_EQ(0, copied["referenced_bytes"].number());
    BlockImage image = datum_block({numbered_element(0)});
    image.header().bytes_before = 5000;
    image.header().referenced_bytes = static_cast<uint32_t>(9 * image.bytes.size());
    task.supply(image);
    const Json pair = snapshot();
    EXPECT_EQ(9.0 * static_cast<double>(image.bytes.size()), pair["referenced_bytes"].number());
    EXPECT_EQ(5000 + 10.0 * static_cast<double>(image.bytes.size()), pair["bytes"].number());
    EXPECT_TRUE(says(run(SUPPLY_TEST_STAT).out, {"90 % of the last block's bytes are in place"}));
    task.end_of_epoch(0);
    EXPECT_EQ(0, snapshot()["referenced_bytes"].number());
    EXPECT_EQ(std::string::npos, run(SUPPLY_TEST_STAT).out.find("in place"));
}

TEST_F(SupplyStatTest, BlocksOfAResidentFileCountAsBytes) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    supply_datums(task, 0);
    EXPECT_FALSE(snapshot()["in_resident_file"].is_true());
    notification in_file = {};
    in_file.kind = NOTIFICATION_BLOCK;
    in_file.element_count = 7;
    in_file.partition = 4;
    in_file.offset = RING_OFFSET;
    in_file.size = 5000;
    std::vector<uint8_t> bytes(sizeof(block_header));
    reinterpret_cast<block_header *>(bytes.data())->elements_before = 10;
    reinterpret_cast<block_header *>(bytes.data())->bytes_before = 1000;
    const notification sent = task.next_in_file(1, in_file, 1);
    task.write(bytes, sent);
    task.publish();
    const Json pair = snapshot();
    EXPECT_TRUE(pair["in_resident_file"].is_true());
    EXPECT_EQ(17, pair["elements"].number());
    EXPECT_EQ(6000, pair["bytes"].number());
    EXPECT_EQ(4, pair["partition"].number());
    EXPECT_TRUE(says(run(SUPPLY_TEST_STAT).out, {"the last block is in a resident file, not copied"}));
    task.end_of_epoch(1);
    EXPECT_EQ(std::string::npos, run(SUPPLY_TEST_STAT).out.find("resident file"));
}

TEST_F(SupplyStatTest, OnlyOnePair) {
    Handle handle = open_rank();
    EXPECT_EQ(2u, snapshot(config)["pairs"].size());
    std::vector<std::string> second = config;
    second.insert(second.end(), {"--local-rank", "1"});
    const Json pairs_seen = snapshot(second)["pairs"];
    ASSERT_EQ(1u, pairs_seen.size());
    EXPECT_EQ(1, pairs_seen[size_t{0}]["pair"].number());
    EXPECT_EQ("absent", pairs_seen[size_t{0}]["state"].text());
}

TEST_F(SupplyStatTest, PairsOfAFolderAreFound) {
    EXPECT_EQ(0u, snapshot({folder.path()})["pairs"].size());
    Handle handle = open_rank();
    leave_stale_pair(1);
    folder.write("other", std::string(100000, 'x'));
    const Json found = snapshot({folder.path()})["pairs"];
    ASSERT_EQ(2u, found.size());
    EXPECT_EQ("open", found[size_t{0}]["state"].text());
    EXPECT_EQ(0, found[size_t{0}]["pair"].number()) << "from its header";
    EXPECT_FALSE(found[size_t{0}]["waiting_seconds"].is_null()) << "its pipes were found by their names";
    EXPECT_EQ("stale", found[size_t{1}]["state"].text());
    const std::string parent = std::filesystem::path(folder.path()).parent_path();
    snapshot_until("the pairs in a folder below", {parent}, [&](const Json &found) {
        for (size_t i = 0; i < found["pairs"].size(); i++)
            if (found["pairs"][i]["mapped_file"].text() == pairs[0].mapped_file) return true;
        return false;
    });
}

TEST_F(SupplyStatTest, PrintsATableOnce) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    supply_datums(task, 0, 3, 7);
    const Ended ended = run(SUPPLY_TEST_STAT);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(says(ended.out, {"PAIR", "ELEMENTS/S", "supplying", "absent", "1/4", pairs[1].mapped_file.c_str(),
                                 std::to_string(getpid()).c_str()}));
    EXPECT_EQ(3, std::count(ended.out.begin(), ended.out.end(), '\n'));
}

TEST_F(SupplyStatTest, ErrorsNameTheMistake) {
    EXPECT_EQ(2, run(SUPPLY_TEST_STAT, {"--bogus"}).exit_status);
    EXPECT_EQ(2, run(SUPPLY_TEST_STAT, {"--interval", "0"}).exit_status);
    EXPECT_TRUE(says(run(SUPPLY_TEST_STAT, {folder.path()}).err, {"--mapped-files", "folder"}));
    const auto stat = [&](const char *argument) {
        return Process({"env", "-u", "SUPPLY_MAPPED_FILES", SUPPLY_TEST_STAT, argument, folder.path()}, folder.path())
            .wait();
    };
    EXPECT_TRUE(says(stat("/one").err, {"unexpected argument"}));
    config[1] = folder.file("absent.conf");
    const Ended ended = run(SUPPLY_TEST_STAT);
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-stat: ", "absent.conf"}));
    const Ended nowhere = Process({SUPPLY_TEST_STAT, folder.file("nowhere")}, folder.path()).wait();
    EXPECT_EQ(1, nowhere.exit_status);
    EXPECT_TRUE(says(nowhere.err, {"supply-stat: ", "nowhere", "No such file"}));
    const Ended full =
        Process({"sh", "-c", "exec \"$@\" > /dev/full", "sh", SUPPLY_TEST_STAT, "--interval", "0.01", folder.path()},
                folder.path())
            .wait();
    EXPECT_EQ(1, full.exit_status);
    EXPECT_TRUE(says(full.err, {"supply-stat: standard output: "}));
}

} // namespace
} // namespace supply_test
