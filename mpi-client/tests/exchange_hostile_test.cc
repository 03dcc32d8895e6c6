/** Tasks that change what a rank has checked: no rank reads outside its buffers, and all fail together. */
#include <atomic>
#include <cstring>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeHostileTest : public ExchangeTest {
  protected:
    void supply(int rank, Task &task) override { task_of(rank, task); }

    static uint8_t *mapped_file(Task &task) { return reinterpret_cast<uint8_t *>(&task.header()); }

    /** Writes over the schema. */
    static void overwrite_schema(Task &task, const std::vector<Column> &columns) {
        const std::vector<schema_entry> entries = schema_of(columns);
        memcpy(mapped_file(task) + SCHEMA_OFFSET, entries.data(), entries.size() * sizeof entries[0]);
    }

    std::function<void(int, Task &)> task_of;
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
    run([&](int rank) {
        ExchangeRank &of = *ranks[static_cast<size_t>(rank)];
        of.open(*network, rank, &options);
        wait_until("the schema", [&] { return has_schema.load(); });
        EXPECT_EQ(1, supply_column_count(of.handle.get())) << supply_error(of.handle.get());
        is_learned = true;
        of.read_epoch(shape);
        of.handle.reset();
    });
    expect_failure(SUPPLY_ERROR_CONTRACT, {"pair 0", "column 'id'"});
}

} // namespace supply_test
