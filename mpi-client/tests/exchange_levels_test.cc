/** Ranks of several nodes with equally many ranks, which exchange in two levels. */
#include <unistd.h>

#include "exchange_ranks.h"

extern "C" {
#include "base/mix.h"
#include "collective.h"
}

namespace supply_test {

class ExchangeLevelsTest : public ExchangeTest {
  protected:
    ExchangeLevelsTest() { options.policy = SUPPLY_EXCHANGE_ALL; }

    void create_nodes(size_t nodes, const std::vector<uint32_t> &counts, bool in_turns = false) {
        const size_t all = counts.size();
        ranks.clear();
        data.clear();
        create(counts);
        spread([=](size_t rank) { return in_turns ? rank % nodes : rank * nodes / all; });
    }

    /** The most bytes that a rank has received over its rail. */
    size_t most_on_rails() {
        size_t most = 0;
        for (ThreadNetwork *rail : network->parts()) most = std::max(most, rail->most_received());
        return most;
    }

    /** By their hashes, this rank's ids are for these ranks in turns. */
    void send(size_t from, const std::vector<uint32_t> &to, size_t count) {
        options.policy = SUPPLY_EXCHANGE_HASH;
        options.column = "id";
        for (; data[from].ids.size() < count; next_id++) {
            const uint64_t hash = supply__hash(&next_id, sizeof next_id, 0);
            const uint32_t rank = static_cast<uint32_t>((hash >> 32) * ranks.size() >> 32);
            if (rank == to[data[from].ids.size() % to.size()]) data[from].ids.push_back(next_id);
        }
    }
    int64_t next_id = 0;

    /** Operations of all ranks at the opening. */
    enum { OPENED, CARDS, LINKS, BOARDS, RAILS, OPENING };

    const std::vector<uint32_t> unequal = {300, 0, 200, 100, 50, 1, 250, 80, 90, 100, 110, 120};
};

TEST_F(ExchangeLevelsTest, NodesOneAfterTheOtherAndInTurns) {
    for (const Shape each : {Shape::fixed, Shape::every, Shape::nested})
        for (const size_t nodes : {2u, 3u, 6u})
            for (const bool in_turns : {false, true}) {
                SCOPED_TRACE(testing::Message() << nodes << " nodes, in turns: " << in_turns);
                shape = each;
                options.window_bytes = 3000;
                create_nodes(nodes, unequal, in_turns);
                run_all();
                expect_once();
                EXPECT_EQ(12 / nodes, network->parts().size()) << "a rail for each place of a node";
                EXPECT_EQ(uint64_t{OPENING}, network->begun(0)) << "then nothing goes over all ranks";
                EXPECT_GT(most_on_rails(), 0u);
            }
}

/* Nodes with different numbers of ranks, a single rank on each, and one node have one level. One rank has nothing. */
TEST_F(ExchangeLevelsTest, OtherNodesHaveOneLevel) {
    const std::vector<std::function<size_t(size_t)>> nodes = {
        [](size_t rank) { return rank < 2 ? 0 : 1; },
        [](size_t rank) { return rank; },
        [](size_t) { return 0; },
    };
    for (const Shape each : {Shape::fixed, Shape::every, Shape::nested})
        for (const auto &node_of : nodes) {
            shape = each;
            ranks.clear();
            data.clear();
            create({100, 200, 300, 0, 60, 70});
            spread(node_of);
            run_all();
            expect_once();
            EXPECT_TRUE(network->parts().empty());
        }
}

/* Grants have more numbers than offers of fixed widths, and more than texts of few nodes. */
TEST_F(ExchangeLevelsTest, ManyRanksOnEachNode) {
    create_nodes(2, std::vector<uint32_t>(96, 5));
    run_all();
    expect_once();
}

/* All elements go through one rail, and to one rank: rounds halve until the board has space, too. */
TEST_F(ExchangeLevelsTest, OneHotKey) {
    options.policy = SUPPLY_EXCHANGE_HASH;
    options.column = "key";
    options.window_bytes = 2000;
    shape = Shape::every;
    for (const auto &counts : {std::vector<uint32_t>(8, 300), std::vector<uint32_t>{900, 0, 0, 0, 900, 0, 0, 0}}) {
        create_nodes(2, counts);
        run_all();
        expect_once();
    }
}

/* Each of three ranks could take a third of the window, but one rail brings all: the round is halved. */
TEST_F(ExchangeLevelsTest, ARailThatBringsTooMuchHalvesTheRound) {
    options.window_bytes = 20000;
    create_nodes(4, std::vector<uint32_t>(12));
    for (const size_t rank : {0u, 3u, 6u}) send(rank, {9, 10, 11}, 2500);
    run_all();
    expect_once();
    EXPECT_GT(most_on_rails(), 25000u);
    EXPECT_LE(most_on_rails(), 2 * 25000u + 8 * ranks.size());
}

/* One element for each rank of the node is more than a window: the board takes them together. */
TEST_F(ExchangeLevelsTest, ElementsAsLargeAsAWindow) {
    shape = Shape::wide;
    options.window_bytes = 2500;
    create_nodes(6, std::vector<uint32_t>(30));
    for (const uint32_t place : {0u, 1u, 2u, 3u, 4u}) send(place * 5, {25 + place}, 20);
    for (const auto &rank : ranks) {
        rank->pair_options.block_bytes = 1 << 18;
        rank->pair_options.ring_bytes = 1 << 20;
    }
    run_all();
    expect_once();
    EXPECT_GT(most_on_rails(), 5u * 2300);
}

/* If one rank cannot, no rank does. */
TEST_F(ExchangeLevelsTest, ARankWithoutARailOrABoardLeavesOneLevel) {
    const std::vector<std::function<void()>> obstacles = {
        [this] { network->refuse_to_split(2); },
        [this] { /* rank 3 has found no memory for its board */
                 for (int rank = 0; rank < 4; rank++)
                     network->change(rank, BOARDS, sizeof(card),
                                     [](void *cards) { static_cast<card *>(cards)[3] = {}; });
        },
        [this] { /* rank 0 cannot map the board of rank 1 */
                 network->change(0, BOARDS, sizeof(card), [](void *cards) { static_cast<card *>(cards)[1].inode++; });
        },
        [this] { /* ranks of another library */
                 network->change(0, BOARDS, sizeof(card),
                                 [](void *cards) { static_cast<card *>(cards)[1].ring_bytes--; });
        },
    };
    for (const auto &obstacle : obstacles) {
        create_nodes(2, {100, 100, 100, 100});
        obstacle();
        run_all();
        expect_once();
        EXPECT_GT(network->most_received(), 0u) << "messages go to each rank";
        EXPECT_EQ(0u, most_on_rails());
    }
}

/** Rank 0 of four, and the links that all have told it. */
struct Linked {
    explicit Linked(const std::array<uint64_t, 4> &rows) {
        failure why = {};
        EXPECT_EQ(SUPPLY_OK, exchange_neighbours_init(&all, 0, 4, &why));
        EXPECT_EQ(SUPPLY_OK, exchange_levels_init(&of, &all, &why));
        std::copy(rows.begin(), rows.end(), all.links);
    }
    Linked(const Linked &) = delete;
    Linked &operator=(const Linked &) = delete;
    ~Linked() {
        exchange_levels_free(&of);
        exchange_neighbours_free(&all);
    }

    levels of = {};
    neighbours all = {};
};

/* What a rank says of the places of messages is not trusted: a task with access to the board could write there. */
TEST_F(ExchangeLevelsTest, AMessageOutsideOfItsBoard) {
    Linked linked({3, 3, 12, 12});
    levels &of = linked.of;
    ASSERT_TRUE(exchange_levels_find(&of));
    EXPECT_EQ(2u, of.nodes);
    EXPECT_EQ(2u, of.peers);
    exchange_levels_make_board(&of, 1000);
    ASSERT_NE(0u, of.mine.ring_bytes);
    /* Of rank 2, the first one of the other node, whose messages this rank's own rail brings. */
    uint64_t *place = reinterpret_cast<uint64_t *>(of.boards[0]) + 8 + 2;
    for (const uint64_t at : {of.board_bytes - 99, of.board_bytes + 1, UINT64_MAX}) {
        *place = at;
        EXPECT_EQ(nullptr, exchange_levels_message(&of, 2, 100)) << at;
    }
    *place = of.board_bytes - 100;
    EXPECT_NE(nullptr, exchange_levels_message(&of, 2, 100));
}

/* Whoever waits for the boards of a node names a rank that has ended without its part. */
TEST_F(ExchangeLevelsTest, ARankThatEndsBeforeItPosts) {
    Linked linked({3, 3, 12, 12});
    levels &of = linked.of;
    std::vector<uint64_t> board_of_1(8);
    ASSERT_TRUE(exchange_levels_find(&of));
    exchange_levels_make_board(&of, 1000);
    of.boards[1] = reinterpret_cast<board *>(board_of_1.data());
    of.number = 7;
    exchange_levels_post(&of);
    board_of_1[0] = 6;
    EXPECT_FALSE(exchange_levels_have_posted(&of));
    EXPECT_EQ(NOBODY_LOST, linked.all.lost);
    linked.all.all[1].has_ended = true;
    board_of_1[0] = 7;
    EXPECT_TRUE(exchange_levels_have_posted(&of)) << "what it has posted before counts";
    EXPECT_EQ(NOBODY_LOST, linked.all.lost);
    of.number = 8;
    EXPECT_FALSE(exchange_levels_have_posted(&of));
    EXPECT_EQ(1u, linked.all.lost);
    of.boards[1] = nullptr;
}

/* Rows of links that no library sends: they are no grid, and nothing is read or written outside of the memory. */
TEST_F(ExchangeLevelsTest, LinksThatAreNoNodes) {
    const std::vector<std::array<uint64_t, 4>> all_rows = {
        {3, 3, 12, 4},   {3, 1, 12, 12},  {3, 3, 15, 12}, {0, 0, 0, 0},
        {14, 13, 11, 7}, {15, 15, 15, 0}, {12, 12, 3, 3}, {3, 12, 3, 12},
    };
    for (const auto &rows : all_rows) {
        Linked linked(rows);
        EXPECT_FALSE(exchange_levels_find(&linked.of)) << rows[0] << " " << rows[1] << " " << rows[2] << " " << rows[3];
        EXPECT_EQ(4u, linked.of.nodes);
        for (uint32_t rank = 0; rank < 4; rank++) EXPECT_EQ(rank, linked.of.order[rank]);
    }
}

} // namespace supply_test
