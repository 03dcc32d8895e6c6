/** The policy hash: a key on one rank. */
#include <atomic>
#include <cmath>
#include <map>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeHashTest : public ExchangeTest {
  protected:
    ExchangeHashTest() {
        shape = Shape::every;
        options.policy = SUPPLY_EXCHANGE_HASH;
        options.column = "key";
        options.window_bytes = 2000;
    }

    /** Expects that rows with the same key are on one rank. Returns how many ranks have a row. */
    template <typename KeyOf>
    size_t expect_grouped(KeyOf key_of_row) {
        std::map<std::string, size_t> rank_of;
        std::map<size_t, int> used;
        for (size_t rank = 0; rank < ranks.size(); rank++)
            for (const int64_t id : ranks[rank]->epochs[0]) {
                used[rank]++;
                EXPECT_EQ(rank, rank_of.emplace(key_of_row(id), rank).first->second) << id;
            }
        return used.size();
    }
};

TEST_F(ExchangeHashTest, AKeyIsOnOneRank) {
    create({400, 100, 0, 300});
    run_all();
    expect_once();
    EXPECT_GT(expect_grouped(key_of), 1u);
}

TEST_F(ExchangeHashTest, KeysOfFixedWidth) {
    options.column = "small";
    create({300, 300, 300});
    run_all();
    expect_once();
    EXPECT_EQ(3u, expect_grouped([](int64_t id) { return std::to_string(id * 7 % 65536); }));
}

TEST_F(ExchangeHashTest, KeysOfBits) {
    options.column = "flag";
    create({100, 100, 100, 100});
    run_all();
    expect_once();
    EXPECT_LE(expect_grouped([](int64_t id) { return std::to_string(id % 3 == 0); }), 2u);
}

TEST_F(ExchangeHashTest, KeysOfLists) {
    options.column = "list";
    create({100, 100});
    data[1].ids = data[0].ids;
    run_all();
    EXPECT_EQ(2u, expect_grouped([](int64_t id) { return std::to_string(id); }));
}

TEST_F(ExchangeHashTest, NullsAreOneGroup) {
    options.column = "maybe";
    options.nulls_together = true;
    create({250, 250, 250});
    run_all();
    expect_once();
    EXPECT_EQ(3u, expect_grouped([](int64_t id) { return id % 5 == 2 ? "null" : std::to_string(id); }));
}

TEST_F(ExchangeHashTest, OneHugeKeyTakesRoundsAndNoMemory) {
    options.window_bytes = 3000;
    options.messages_only = true;
    create({0, 0, 0, 0});
    for (int rank = 0; rank < 4; rank++)
        for (int64_t i = 0; i < 200; i++) data[static_cast<size_t>(rank)].ids.push_back((rank * 200 + i) * 8);
    run_all();
    expect_once();
    EXPECT_EQ(1u, expect_grouped(key_of));
    EXPECT_LE(network->most_received(), 3750u) << "although a window of all ranks has 12000 bytes";
}

TEST_F(ExchangeHashTest, ANullableKeyNeedsAChoice) {
    options.column = "text";
    create({10, 10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 0", "'text'", "nullable", "nulls_together"});
}

TEST_F(ExchangeHashTest, AMissingColumnIsNamed) {
    options.column = "kye";
    create({10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 0", "'kye'", "'id'"});
}

/** Keys of floating-point numbers: those that are equal to Spark, although their bits are not. */
class ExchangeHashOfFloatsTest : public ExchangeTest {
  protected:
    ExchangeHashOfFloatsTest() {
        options.policy = SUPPLY_EXCHANGE_HASH;
        options.column = "key";
    }

    void supply(int, Task &task) override {
        task.supply_all(columns, 4);
        task.end_of_epoch(0);
        task.end_of_data(0);
        task.see_end();
    }

    /** Expects that one of eight ranks gets all keys. */
    void expect_on_one_rank(const Column &key) {
        columns = {key};
        ranks.clear();
        data.clear();
        create(std::vector<uint32_t>(8, 0));
        std::atomic<int> used{0};
        run([&](int number, ExchangeRank &rank) {
            supply_block_t block;
            uint32_t elements = 0;
            rank.status = rank.open(*network, number, &options);
            while (rank.status == SUPPLY_OK && (rank.status = supply_next(rank.handle.get(), &block)) == SUPPLY_OK) {
                elements += block.element_count;
                supply_release(rank.handle.get(), &block);
            }
            EXPECT_STATUS(SUPPLY_END_OF_EPOCH, rank.status, rank.handle);
            EXPECT_TRUE(elements == 0 || elements == 32) << elements;
            used += elements > 0;
            EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_next(rank.handle.get(), &block), rank.handle);
            rank.handle.reset();
        });
        EXPECT_EQ(1, used);
    }

    template <typename T>
    static std::string bytes_of(const std::vector<T> &values) {
        return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    }

    std::vector<Column> columns;
};

TEST_F(ExchangeHashOfFloatsTest, ZeroHasOneSign) {
    expect_on_one_rank(Column::fixed("key", "f", bytes_of<float>({0.0F, -0.0F, 0.0F, -0.0F})));
    expect_on_one_rank(Column::fixed("key", "g", bytes_of<double>({0.0, -0.0, 0.0, -0.0})));
    expect_on_one_rank(Column::fixed("key", "e", bytes_of<uint16_t>({0, 0x8000, 0, 0x8000})));
}

TEST_F(ExchangeHashOfFloatsTest, NotANumberIsOneKey) {
    expect_on_one_rank(
        Column::fixed("key", "f", bytes_of<float>({std::nanf("1"), -std::nanf("2"), std::nanf("3"), std::nanf("4")})));
    expect_on_one_rank(
        Column::fixed("key", "g", bytes_of<double>({std::nan("1"), -std::nan("2"), std::nan("3"), std::nan("4")})));
    expect_on_one_rank(Column::fixed("key", "e", bytes_of<uint16_t>({0x7c01, 0xfe02, 0x7fff, 0x7e00})));
}

TEST_F(ExchangeHashOfFloatsTest, InLists) {
    expect_on_one_rank(
        Column::list("key", "+w:2", "g", bytes_of<double>({0.0, 0.0, 0.0, -0.0, -0.0, 0.0, -0.0, -0.0})));
}

} // namespace supply_test
