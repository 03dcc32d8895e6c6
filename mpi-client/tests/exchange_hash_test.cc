/** The policy hash: a key on one rank. */
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
    run_all();
    expect_once();
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

} // namespace supply_test
