/** The policy range: a global order, in memory and from files. */
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "exchange_ranks.h"
#include "small_file_system.h"

extern "C" {
#include "sort/sort_key.h"
}

namespace supply_test {

class ExchangeRangeTest : public ExchangeTest {
  protected:
    ExchangeRangeTest() {
        options.policy = SUPPLY_EXCHANGE_RANGE;
        options.column = "id";
        options.window_bytes = 400;
        options.spill_folder = spill_folder.c_str();
    }

    void shuffle() {
        std::mt19937 random(7);
        std::vector<int64_t> all;
        for (const Supplied &of : data) all.insert(all.end(), of.ids.begin(), of.ids.end());
        std::shuffle(all.begin(), all.end(), random);
        auto next = all.begin();
        for (Supplied &of : data)
            for (int64_t &id : of.ids) id = *next++ - 100;
    }

    /** What the ranks have received, one after the other. */
    std::vector<int64_t> received(uint32_t epoch = 0) const {
        std::vector<int64_t> all;
        for (const auto &rank : ranks) all.insert(all.end(), rank->epochs[epoch].begin(), rank->epochs[epoch].end());
        return all;
    }

    void expect_order(uint32_t epochs = 1) {
        expect_once(epochs);
        for (uint32_t epoch = 0; epoch < epochs; epoch++) {
            const std::vector<int64_t> all = received(epoch);
            EXPECT_TRUE(std::is_sorted(all.begin(), all.end())) << "epoch " << epoch;
        }
    }

    TemporaryFolder folder;
    const std::string spill_folder = folder.path();
};

TEST_F(ExchangeRangeTest, AllElementsHaveOneOrder) {
    create({500, 500, 500}, 2);
    shuffle();
    run_all();
    expect_order(2);
    for (const auto &rank : ranks) EXPECT_GT(rank->epochs[0].size(), 250u) << "the sample divides the values badly";
}

TEST_F(ExchangeRangeTest, RanksWithoutElementsTakePart) {
    create({0, 300, 0, 1});
    shuffle();
    run_all();
    expect_order();
}

TEST_F(ExchangeRangeTest, NothingAtAllIsInOrder) {
    create({0, 0});
    run_all();
    expect_order();
}

/* Otherwise SIGXFSZ would end the program. Pairs are made before the limit holds. */
TEST_F(ExchangeRangeTest, ALimitOfFileSizesFailsOnAllRanks) {
    options.memory_bytes = 4000;
    create({700, 300});
    shuffle();
    rlimit before, limited;
    ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &before));
    limited = before;
    limited.rlim_cur = 5000;
    run([&](int number, ExchangeRank &rank) {
        const supply_status_t status = rank.open(*network, number, &options);
        setrlimit(RLIMIT_FSIZE, &limited);
        if (status == SUPPLY_OK) rank.read_all(shape);
    });
    setrlimit(RLIMIT_FSIZE, &before);
    expect_failure(SUPPLY_ERROR_NO_SPACE,
                   {"rank ", "sorted elements cannot be written in", "files of 5000", "ulimit -f", "memory_bytes"});
}

TEST_F(ExchangeRangeTest, AFullFolderFailsOnAllRanks) {
    const std::string small = folder.file("small");
    const SmallFileSystem file_system(small);
    if (!file_system.is_mounted()) GTEST_SKIP() << SmallFileSystem::needs;
    std::ofstream(small + "/filler") << std::string(2 << 20, 'x');
    EXPECT_EQ(0u, std::filesystem::space(small).available);
    options.spill_folder = small.c_str();
    options.memory_bytes = 4000;
    create({700, 300});
    shuffle();
    run_all();
    expect_failure(SUPPLY_ERROR_NO_SPACE,
                   {"rank ", "sorted elements cannot be written in", small.c_str(), "No space left",
                    "set spill_folder to a folder with more space", "memory_bytes larger"});
}

TEST_F(ExchangeRangeTest, WhatDoesNotFitIntoMemoryIsMergedFromFiles) {
    options.memory_bytes = 4000;
    create({700, 300}, 2);
    shuffle();
    run_all();
    expect_order(2);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(ExchangeRangeTest, EveryColumnFollowsItsKey) {
    shape = Shape::every;
    options.window_bytes = 4000;
    for (const size_t memory : {size_t{0}, size_t{20000}}) {
        options.memory_bytes = memory;
        ranks.clear();
        data.clear();
        create({400, 300});
        std::reverse(data[0].ids.begin(), data[0].ids.end());
        run_all();
        expect_order();
    }
}

TEST_F(ExchangeRangeTest, TextHasTheOrderOfItsBytesAndNullsAreLast) {
    shape = Shape::every;
    options.window_bytes = 4000;
    options.column = "text";
    options.nulls_together = true;
    options.memory_bytes = 20000;
    create({400, 300});
    run_all();
    expect_once();
    const auto text = [](int64_t id) { return std::string(static_cast<size_t>(id % 40), 'x') + key_of(id); };
    const auto is_null = [](int64_t id) { return id % 5 == 2; };
    const std::vector<int64_t> all = received();
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [&](int64_t one, int64_t other) {
        return is_null(one) != is_null(other) ? is_null(other) : !is_null(one) && text(one) < text(other);
    }));
}

/* A key of many rows is divided among the ranks, and so are nulls. */
TEST_F(ExchangeRangeTest, EqualKeysAndNullsAreDivided) {
    shape = Shape::every;
    options.window_bytes = 8000;
    options.nulls_together = true;
    for (const char *column : {"flag", "maybe"}) {
        options.column = column;
        ranks.clear();
        data.clear();
        create({400, 300, 500, 0});
        for (Supplied &of : data)
            for (int64_t &id : of.ids) id = column == std::string("flag") ? id : 5 * id + 2; /* all are null */
        run_all();
        expect_once();
        for (const auto &rank : ranks) EXPECT_NEAR(300, static_cast<double>(rank->epochs[0].size()), 60) << column;
    }
}

/* A rank with few rows has as many samples as one with many. */
TEST_F(ExchangeRangeTest, SamplesWeighWhatARankHas) {
    options.window_bytes = 80000;
    create({9000, 1200, 1200});
    for (size_t rank = 0; rank < data.size(); rank++)
        for (size_t i = 0; i < data[rank].ids.size(); i++)
            data[rank].ids[i] =
                rank == 0 ? static_cast<int64_t>(i * 7919 % 9000) : 20000 + static_cast<int64_t>(2 * i + rank);
    run_all();
    expect_order();
    for (const auto &rank : ranks) EXPECT_NEAR(3800, static_cast<double>(rank->epochs[0].size()), 500);
}

TEST_F(ExchangeRangeTest, AResumedEpochReturnsTheRestOfTheSameOrder) {
    create({300, 300}, 2);
    shuffle();
    std::vector<supply_position_t> positions(2);
    run([&](int rank, ExchangeRank &of) {
        ASSERT_EQ(SUPPLY_OK, of.open(*network, rank, &options)) << of.error;
        supply_block_t block;
        for (int i = 0; i < 2; i++) {
            ASSERT_EQ(SUPPLY_OK, supply_next(of.handle.get(), &block)) << supply_error(of.handle.get());
            const std::vector<int64_t> rows = read_rows(of.handle.get(), block, shape);
            of.ids.insert(of.ids.end(), rows.begin(), rows.end());
            ASSERT_EQ(SUPPLY_OK, supply_release(of.handle.get(), &block));
        }
        ASSERT_EQ(SUPPLY_OK, supply_position_save(of.handle.get(), &positions[static_cast<size_t>(rank)]));
        supply_abort(of.handle.release(), "the test ends this run");
    });
    network = std::make_unique<ThreadNetwork>(2);
    for (size_t rank = 0; rank < 2; rank++) ranks[rank]->pair_options.position = &positions[rank];
    run_all();
    expect_order(2);
}

TEST_F(ExchangeRangeTest, WhatCannotBeSortedFailsOnAllRanks) {
    shape = Shape::every;
    const struct {
        const char *column;
        std::initializer_list<const char *> words;
    } cases[] = {{"list", {"list", "+w:3", "cannot sort", "cast it"}},
                 {"nothing", {"no column 'nothing'", "sort"}},
                 {"maybe", {"maybe", "nulls_together"}}};
    options.window_bytes = 4000;
    for (const auto &[column, words] : cases) {
        options.column = column;
        ranks.clear();
        data.clear();
        create({50, 50});
        run_all();
        expect_failure(SUPPLY_ERROR_ARGUMENT, words);
    }
}

TEST_F(ExchangeRangeTest, AFolderThatIsNotThereIsNamedOnAllRanks) {
    options.spill_folder = "/nowhere/at/all";
    options.memory_bytes = 1000;
    create({500, 500});
    run_all();
    expect_failure(SUPPLY_ERROR_SYSTEM, {"/nowhere/at/all", "spill_folder"});
}

namespace {

template <typename T>
supply_column_t column_of(const char *format, const std::vector<T> &values) {
    supply_column_t column = {};
    column.format = format;
    column.child_format = "";
    column.element_count = static_cast<uint32_t>(values.size());
    column.data = values.data();
    column.data_bytes = values.size() * sizeof(T);
    return column;
}

template <typename T>
void expect_ascending(const char *format, const std::vector<T> &values) {
    const supply_column_t column = column_of(format, values);
    const key_order *order = exchange_key_order(format);
    ASSERT_NE(nullptr, order) << format;
    const uint32_t count = column.element_count;
    for (uint32_t i = 0; i + 1 < count; i++) {
        sort_key one, next;
        exchange_key_read(order, &column, i, &one);
        exchange_key_read(order, &column, i + 1, &next);
        EXPECT_LT(exchange_key_compare(&one, &next), 0) << format << " " << i;
        EXPECT_GT(exchange_key_compare(&next, &one), 0) << format << " " << i;
        EXPECT_EQ(0, exchange_key_compare(&one, &one)) << format << " " << i;
    }
}

} // namespace

TEST(SortKeyTest, NumbersHaveTheOrderOfTheirValues) {
    const double infinity = std::numeric_limits<double>::infinity();
    expect_ascending<int8_t>("c", {-128, -1, 0, 127});
    expect_ascending<uint8_t>("C", {0, 127, 128, 255});
    expect_ascending<int16_t>("s", {-32768, -1, 0, 32767});
    expect_ascending<uint16_t>("S", {0, 32768, 65535});
    expect_ascending<int32_t>("i", {INT32_MIN, -1, 0, INT32_MAX});
    expect_ascending<uint32_t>("I", {0, 1u << 31, UINT32_MAX});
    expect_ascending<int64_t>("l", {INT64_MIN, -1, 0, INT64_MAX});
    expect_ascending<uint64_t>("L", {0, UINT64_C(1) << 63, UINT64_MAX});
    expect_ascending<int64_t>("tsu:UTC", {-5, 5});
    expect_ascending<int32_t>("tdD", {-5, 5});
    expect_ascending<float>("f", {-3e38f, -1, 0, 1e-40f, 1, std::numeric_limits<float>::quiet_NaN()});
    expect_ascending<double>("g", {-infinity, -1e300, -1e-300, 0, 1e-300, 1, infinity, std::nan("")});
    expect_ascending<__int128>(
        "d:38,2", {-(static_cast<__int128>(1) << 100), -2, -1, 0, 1, UINT64_MAX, static_cast<__int128>(1) << 100});
}

TEST(SortKeyTest, BothZerosAreEqual) {
    const std::vector<double> values = {0.0, -0.0};
    const supply_column_t column = column_of("g", values);
    sort_key one, other;
    exchange_key_read(exchange_key_order("g"), &column, 0, &one);
    exchange_key_read(exchange_key_order("g"), &column, 1, &other);
    EXPECT_EQ(0, exchange_key_compare(&one, &other));
}

TEST(SortKeyTest, ListsHaveNoOrder) { EXPECT_EQ(nullptr, exchange_key_order("+w:3")); }

} // namespace supply_test
