/** Tasks that change what a rank has checked: no rank reads outside its buffers, and all fail together. */
#include <atomic>
#include <cstring>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeHostileTest : public ExchangeTest {
  protected:
    ExchangeHostileTest() { options.policy = SUPPLY_EXCHANGE_ALL; }

    void supply(int rank, Task &task) override { task_of(rank, task); }

    static uint8_t *mapped_file(Task &task) { return reinterpret_cast<uint8_t *>(&task.header()); }

    /** Writes over the schema. */
    static void overwrite_schema(Task &task, const std::vector<Column> &columns) {
        const std::vector<schema_entry> entries = schema_of(columns);
        memcpy(mapped_file(task) + SCHEMA_OFFSET, entries.data(), entries.size() * sizeof entries[0]);
    }

    /** The offsets of the first column of the first block. */
    static int32_t *offsets(Task &task) {
        uint8_t *slot = mapped_file(task) + task.header().ring_offset;
        const auto *column = reinterpret_cast<block_column *>(slot + sizeof(block_header));
        return reinterpret_cast<int32_t *>(slot + column->offsets_offset);
    }

    /** A rank that waits for ever is interrupted after that many collectives. */
    void interrupt_after(uint64_t collectives) {
        most_collectives = collectives;
        for (auto &rank : ranks) {
            rank->pair_options.interrupted = [](void *test) {
                auto *of = static_cast<ExchangeHostileTest *>(test);
                return of->network->begun(0) > of->most_collectives;
            };
            rank->pair_options.interrupted_context = this;
        }
    }

    static void expect_rows(supply_t *handle, const supply_block_t &block) {
        supply_column_t column;
        ASSERT_EQ(SUPPLY_OK, supply_column(handle, &block, 0, &column));
        for (uint32_t i = 0; i < block.element_count; i++)
            EXPECT_EQ(std::string(100, 'k'),
                      std::string(static_cast<const char *>(column.data) + column.offsets[i],
                                  static_cast<const char *>(column.data) + column.offsets[i + 1]));
    }

    /**
     * Every rank has values of 100 bytes, all for one rank: nine need three rounds, six need two. After the first round
     * the tasks, or that of one rank only, change the offsets.
     */
    void expect_failure_after(const std::function<void(int32_t *)> &change, int only = -1, uint32_t values = 9) {
        std::atomic<bool> is_delivered{false};
        std::atomic<int> changed{0};
        options.policy = SUPPLY_EXCHANGE_HASH;
        options.column = "id";
        options.window_bytes = 1000;
        create({0, 0, 0});
        interrupt_after(1000);
        task_of = [&](int rank, Task &task) {
            const std::vector<Column> keys = {Column::variable("id", "z", {values, std::string(100, 'k')})};
            task.supply_all(keys, values);
            task.end_of_epoch(0);
            wait_until("the first round", [&] { return is_delivered.load(); });
            if (only < 0 || rank == only) change(offsets(task));
            changed++;
        };
        run([&](int number, ExchangeRank &rank) {
            supply_block_t block;
            rank.status = rank.open(*network, number, &options);
            while (rank.status == SUPPLY_OK && (rank.status = supply_next(rank.handle.get(), &block)) == SUPPLY_OK) {
                expect_rows(rank.handle.get(), block);
                is_delivered = true;
                wait_until("the change", [&] { return changed == 3; });
                supply_release(rank.handle.get(), &block);
            }
            rank.error = supply_error(rank.handle.get());
            await_task(number);
            rank.handle.reset();
        });
        const std::string culprit = "held blocks of rank " + (only < 0 ? "" : std::to_string(only) + " have changed");
        expect_failure(SUPPLY_ERROR_CONTRACT, {culprit.c_str()});
    }

    std::function<void(int, Task &)> task_of;
    uint64_t most_collectives = 0;
    std::atomic<bool> has_columns{false};
};

/* The exchange plans the columns that the program has asked for; the pair must check its blocks by the same ones. */
TEST_F(ExchangeHostileTest, ASchemaThatChangesBeforeTheFirstBlock) {
    std::atomic<bool> has_schema{false}, is_learned{false};
    create({0});
    task_of = [&](int, Task &task) {
        const std::vector<Column> numbers = {Column::fixed("id", "l", std::string(16, 'x'))};
        task.write_schema(schema_of({Column::variable("id", "z", {"a", "b"})}));
        has_schema = true;
        wait_until("the columns", [&] { return is_learned.load(); });
        overwrite_schema(task, numbers);
        task.supply(BlockImage(numbers, 2));
    };
    run([&](int rank, ExchangeRank &of) {
        of.open(*network, rank, &options);
        wait_until("the schema", [&] { return has_schema.load(); });
        EXPECT_EQ(1, supply_column_count(of.handle.get())) << supply_error(of.handle.get());
        is_learned = true;
        of.read_epoch(shape);
        of.handle.reset();
    });
    expect_failure(SUPPLY_ERROR_CONTRACT, {"pair 0", "column 'id'"});
}

/* A rank without a schema gets that of another rank, and then learns one of its own. */
TEST_F(ExchangeHostileTest, OtherColumnsThanThoseOfAnotherRank) {
    create({0, 0});
    task_of = [&](int rank, Task &task) {
        const std::vector<Column> numbers = {Column::fixed("id", "l", std::string(16, 'x'))};
        const std::vector<Column> texts = {Column::variable("id", "z", {"a", "b"})};
        if (rank == 0) {
            task.supply_all(numbers, 2);
        }
        task.end_of_epoch(0);
        if (rank == 0) return task.end_of_epoch(1);
        wait_until("the columns of rank 0", [&] { return has_columns.load(); });
        task.write_schema(schema_of(texts));
        task.supply(BlockImage(texts, 2), 1);
    };
    run([&](int number, ExchangeRank &rank) {
        rank.open(*network, number, &options);
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.read_epoch(shape)) << rank.error;
        has_columns = true;
        rank.read_epoch(shape);
        await_task(number);
        rank.handle.reset();
    });
    expect_failure(SUPPLY_ERROR_CONTRACT, {"rank 1", "other columns than"});
}

/** Nobody gets rows of values that changed between two rounds: with and without neighbours. */
class ChangedValuesTest : public ExchangeHostileTest, public ::testing::WithParamInterface<bool> {
  protected:
    ChangedValuesTest() {
        options.messages_only = GetParam();
        has_thread = false;
    }

    static void move_all(int32_t *offsets, int32_t by, int values = 9) {
        for (int i = 0; i <= values; i++) offsets[i] += by;
    }
};

/* What a rank has offered is what it sends, although the lengths in its block have changed since. */
TEST_P(ChangedValuesTest, GrowBetweenTwoRounds) {
    expect_failure_after([](int32_t *offsets) { offsets[6] -= 250; });
}

/* All lengths are still those that the rank has offered. */
TEST_P(ChangedValuesTest, MoveOutOfTheirBlockBetweenTwoRounds) {
    expect_failure_after([](int32_t *offsets) { move_all(offsets, 1 << 30); });
}

TEST_P(ChangedValuesTest, MoveBeforeTheirBlockBetweenTwoRounds) {
    expect_failure_after([](int32_t *offsets) { move_all(offsets, -(1 << 30)); });
}

TEST_P(ChangedValuesTest, MoveOnOneRank) {
    expect_failure_after([](int32_t *offsets) { move_all(offsets, 1 << 30); }, 2);
}

/* No rank ends the epoch as if all were well. */
TEST_P(ChangedValuesTest, MoveBeforeTheLastRoundOfTheEpoch) {
    expect_failure_after([](int32_t *offsets) { move_all(offsets, 1 << 30, 6); }, 2, 6);
}

INSTANTIATE_TEST_SUITE_P(MessagesOnly, ChangedValuesTest, ::testing::Bool());

} // namespace supply_test
