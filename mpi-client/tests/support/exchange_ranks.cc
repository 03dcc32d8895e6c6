#include "exchange_ranks.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <thread>

extern "C" {
#include "exchange.h"
#include "neighbours.h"
}

namespace supply_test {

ExchangeRank::ExchangeRank()
    : files{folder.file("mapped"), folder.file("request"), folder.file("notification")},
      pair_options{options_of(files)} {
    pair_options.exchange = true;
}

supply_status_t ExchangeRank::open(ThreadNetwork &network, int rank, const supply_exchange_options_t *options) {
    supply_t *supply = nullptr;
    const transport transport = network.of(rank);
    pair_options.rank = rank;
    EXPECT_EQ(SUPPLY_OK, supply_open(&supply, &pair_options)) << supply_error(supply);
    supply_exchange_options_t own;
    if (rank == 0 && options != nullptr && options->struct_bytes == sizeof own &&
        getenv("SUPPLY_TEST_RANK_0_HAS_NO_NEIGHBOURS") != nullptr) {
        own = *options;
        own.messages_only = true;
        options = &own;
    }
    status = supply__exchange_over(&supply, &transport, options);
    handle.reset(supply);
    if (status < 0) error = supply_error(supply);
    return status;
}

supply_status_t ExchangeRank::read_epoch(Shape shape) {
    for (;;) {
        supply_block_t block;
        status = supply_next(handle.get(), &block);
        if (status < 0) error = supply_error(handle.get());
        if (status != SUPPLY_OK) return status;
        const std::vector<int64_t> rows = read_rows(handle.get(), block, shape);
        ids.insert(ids.end(), rows.begin(), rows.end());
        blocks.push_back(block.element_count);
        EXPECT_EQ(SUPPLY_OK, supply_release(handle.get(), &block));
    }
}

void ExchangeRank::read_all(Shape shape) {
    while (status >= 0 && status != SUPPLY_END_OF_DATA) {
        if (read_epoch(shape) != SUPPLY_END_OF_EPOCH) continue;
        epochs.push_back(ids);
        ids.clear();
    }
    const supply_status_t closed = supply_close(handle.release());
    if (status == SUPPLY_END_OF_DATA) {
        EXPECT_EQ(SUPPLY_OK, closed);
    }
}

ExchangeTest::ExchangeTest() {
    supply_exchange_options_init(&options);
    /* A task writes into the pipe of a rank that has left. */
    signal(SIGPIPE, SIG_IGN);
}

void ExchangeTest::create(const std::vector<uint32_t> &counts, uint32_t epochs) {
    int64_t next = 0;
    network = std::make_unique<ThreadNetwork>(static_cast<int>(counts.size()));
    network->any_thread = has_thread && getenv("SUPPLY_TEST_EXCHANGE_HAS_NO_THREAD") == nullptr;
    for (const uint32_t count : counts) {
        ranks.push_back(std::make_unique<ExchangeRank>());
        data.emplace_back();
        data.back().ids.resize(count);
        data.back().epochs = epochs;
        std::iota(data.back().ids.begin(), data.back().ids.end(), next);
        next += count;
    }
    if (getenv("SUPPLY_TEST_TWO_NODES") != nullptr && counts.size() >= 4 && counts.size() % 2 == 0)
        spread([](size_t rank) { return rank % 2; });
}

void ExchangeTest::spread(const std::function<size_t(size_t)> &node_of) {
    const uint64_t cards = 1; /* the second operation */
    const size_t all = ranks.size();
    for (size_t rank = 0; rank < all; rank++)
        network->change(static_cast<int>(rank), cards, sizeof(card), [all, rank, node_of](void *received) {
            for (size_t other = 0; other < all; other++)
                static_cast<card *>(received)[other].machine += node_of(rank) != node_of(other);
        });
}

/* Some tests let a rank leave early. */
static bool rank_has_left(Task &task) {
    task.requests();
    return task.rank_has_left();
}

/* False: the rank has left. */
static bool has_credit(Task &task) {
    bool has_left = false;
    wait_until("credit", [&] {
        has_left = rank_has_left(task);
        return has_left || task.published() < task.released() + task.header().block_count;
    });
    return !has_left;
}

void ExchangeTest::supply(int rank, Task &task) {
    const Supplied &from = data[static_cast<size_t>(rank)];
    const mapped_file_header &header = task.header();
    task.write_schema(row_schema(shape), row_texts(shape));
    for (uint32_t epoch = header.start_epoch; epoch < from.epochs; epoch++) {
        const bool is_rest = epoch == header.start_epoch && header.start_inside;
        for (size_t at = is_rest ? header.start_element : 0; at < from.ids.size(); at += from.block_elements) {
            if (!has_credit(task)) return;
            const size_t end = std::min(at + from.block_elements, from.ids.size());
            const std::vector<int64_t> rows(from.ids.begin() + static_cast<long>(at),
                                            from.ids.begin() + static_cast<long>(end));
            task.supply(row_block(shape, rows), epoch, static_cast<uint32_t>(rank), at);
        }
        if (!has_credit(task)) return;
        task.end_of_epoch(epoch);
    }
    if (!has_credit(task)) return;
    task.end_of_data(from.epochs - 1);
    see_end(task);
}

void ExchangeTest::see_end(Task &task) {
    wait_until("the rank's end", [&] { return rank_has_left(task) || task.released() == task.published(); });
    __atomic_store_n(&task.header().end_seen, 1u, __ATOMIC_RELEASE);
}

void ExchangeTest::run(const std::function<void(int, ExchangeRank &)> &use) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(ranks.size()); rank++) {
        threads.emplace_back([this, rank, &use] { use(rank, *ranks[static_cast<size_t>(rank)]); });
        threads.emplace_back([this, rank] {
            try {
                Task task(ranks[static_cast<size_t>(rank)]->files);
                ranks[static_cast<size_t>(rank)]->has_task = true;
                supply(rank, task);
            } catch (const std::exception &exception) {
                /* Later: the rank left early, as some tests want it; what it has received says the rest. */
                EXPECT_TRUE(ranks[static_cast<size_t>(rank)]->has_task) << exception.what();
                ranks[static_cast<size_t>(rank)]->has_task = true;
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ("", network->mistakes());
}

void ExchangeTest::await_task(int rank) {
    wait_until("the task", [this, rank] { return ranks[static_cast<size_t>(rank)]->has_task.load(); });
}

void ExchangeTest::run_opened(const std::function<void(int, ExchangeRank &)> &use) {
    run([&](int number, ExchangeRank &rank) {
        if (rank.open(*network, number, &options) == SUPPLY_OK) use(number, rank);
    });
}

void ExchangeTest::run_all() {
    run([this](int rank, ExchangeRank &of) {
        if (of.open(*network, rank, &options) == SUPPLY_OK) of.read_all(shape);
        await_task(rank);
        of.handle.reset();
    });
}

void ExchangeTest::expect_once(uint32_t epochs) {
    for (const auto &rank : ranks) {
        ASSERT_EQ(SUPPLY_END_OF_DATA, rank->status) << rank->error;
        ASSERT_EQ(epochs, rank->epochs.size());
    }
    for (uint32_t epoch = 0; epoch < epochs; epoch++) {
        std::vector<int64_t> all, expected;
        for (const auto &rank : ranks) all.insert(all.end(), rank->epochs[epoch].begin(), rank->epochs[epoch].end());
        for (const Supplied &from : data) expected.insert(expected.end(), from.ids.begin(), from.ids.end());
        std::sort(all.begin(), all.end());
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(expected, all) << "epoch " << epoch;
    }
}

void ExchangeTest::expect_failure(supply_status_t status, std::initializer_list<const char *> words) {
    for (const auto &rank : ranks) {
        EXPECT_EQ(status, rank->status) << supply_status_name(rank->status) << " " << rank->error;
        EXPECT_TRUE(says(rank->error, words));
    }
}

} // namespace supply_test
