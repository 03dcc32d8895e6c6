/** Ranks that exchange elements: each is a thread with a real pair, whose task is another thread. */
#pragma once

#include <atomic>
#include <functional>

#include "exchange_rows.h"
#include "rank.h"
#include "supply_exchange_options.h"
#include "thread_transport.h"

namespace supply_test {

/** What the task of a rank supplies in each epoch. */
struct Supplied {
    std::vector<int64_t> ids;
    uint32_t block_elements = 7;
    uint32_t epochs = 1;
};

/** One rank: its pair, and what has become of it. */
class ExchangeRank {
  public:
    ExchangeRank();

    /** Opens the pair and the exchange. The handle is that of the pair if the exchange fails. */
    supply_status_t open(ThreadNetwork &network, int rank, const supply_exchange_options_t *options);
    /** Reads until something else than a block. `ids` gets the rows; `blocks` how many rows each block had. */
    supply_status_t read_epoch(Shape shape);
    /** Reads to the end of the data, and closes the handle. */
    void read_all(Shape shape);

    TemporaryFolder folder;
    PairFiles files;
    supply_options_t pair_options;
    Handle handle;
    std::vector<int64_t> ids;
    std::vector<std::vector<int64_t>> epochs; /**< the rows of each whole epoch */
    std::vector<uint32_t> blocks;
    supply_status_t status = SUPPLY_OK;
    std::string error;
    std::atomic<bool> has_task{false}; /**< a task has attached */
};

/** All ranks. */
class ExchangeTest : public ::testing::Test {
  protected:
    ExchangeTest();

    /** Creates the ranks and their data: row numbers from 0 on, `counts[r]` of them on rank r. */
    void create(const std::vector<uint32_t> &counts, uint32_t epochs = 1);

    /** Created ranks stand for ranks of several nodes. node_of: of each rank. */
    void spread(const std::function<size_t(size_t)> &node_of);

    /** Runs the task of each rank, and `use` for each rank, in threads; each rank's `status` and `error` say how. */
    void run(const std::function<void(int, ExchangeRank &)> &use);
    /** The same for ranks that have opened. */
    void run_opened(const std::function<void(int, ExchangeRank &)> &use);

    /** Opens, and reads to the end of the data. */
    void run_all();

    /** Supplies what follows the position of the rank's pair. */
    virtual void supply(int rank, Task &task);

    /** Sees that the rank has everything, or has left. */
    static void see_end(Task &task);

    /** Waits for the rank's task, so that the rank may leave early. */
    void await_task(int rank);

    /** Expects that each rank has received every epoch, and that all ranks together received each row once. */
    void expect_once(uint32_t epochs = 1);
    /** Expects that every rank has failed so, with these words. */
    void expect_failure(supply_status_t status, std::initializer_list<const char *> words);

    Shape shape = Shape::fixed;
    /** False: only the program's calls advance the exchange, so the test knows how far it is. */
    bool has_thread = true;
    supply_exchange_options_t options;
    std::vector<Supplied> data;
    std::vector<std::unique_ptr<ExchangeRank>> ranks;
    std::unique_ptr<ThreadNetwork> network;
};

} // namespace supply_test
