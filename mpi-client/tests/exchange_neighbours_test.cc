/** Ranks that copy their elements into the rings of others, and what others may say of their rings. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <thread>

#include "exchange_ranks.h"

extern "C" {
#include "agree.h"
}

namespace supply_test {

class ExchangeNeighboursTest : public ExchangeTest {
  protected:
    ExchangeNeighboursTest() { options.policy = SUPPLY_EXCHANGE_ALL; }

    void supply(int rank, Task &task) override { task_of ? task_of(task) : ExchangeTest::supply(rank, task); }

    std::function<void(Task &)> task_of; /* what each task does, if it is set */

    /** What arrives at rank 1 from rank 0 in the allgather, or alltoall, of that number is changed. */
    template <typename Piece>
    void change(uint64_t operation, const std::function<void(Piece &)> &how) {
        network->change(1, operation, sizeof(Piece), [how](void *piece) { how(*static_cast<Piece *>(piece)); });
    }

    /** Four texts, and then the end of the data in the middle of the epoch. */
    static void supply_texts(Task &task) {
        const std::vector<Column> texts = {Column::variable("text", "u", {4, "four"})};
        task.supply_all(texts, 4);
        task.end_of_data(0);
    }

    /** Instead of its ring a rank offers this memory. */
    static void offer(card &card, int fd) {
        struct stat memory = {};
        EXPECT_EQ(0, ftruncate(fd, static_cast<off_t>(card.ring_bytes)));
        EXPECT_EQ(0, fstat(fd, &memory));
        card.descriptor = fd;
        card.device = memory.st_dev;
        card.inode = memory.st_ino;
    }

    /** What rank 0 says in its ring, for a first window in which both ranks send 50 of 100 rows to each other. */
    struct Said {
        std::array<uint64_t, 3> words = {1, RING_OFFSET, RING_OFFSET + (1 << 16)}; /* round, slot, table */
        /* Of the table: senders, elements, bytes of texts; and an entry: rank, arrived, elements, bytes of texts. */
        uint64_t senders = 1, elements = 100, bytes = 0, rank = 1, before = 50, bytes_before = 0;
    };

    /**
     * Instead of the ring of rank 0, rank 1 maps memory in which that is said, and then reads to the end of the epoch,
     * or until rank 0 is interrupted. Returns what rank 1 has stored there: that it has copied, or 0.
     */
    uint64_t run_with(const Said &said, bool has_texts) {
        std::vector<uint64_t> table = {said.senders, said.elements};
        if (has_texts) table.push_back(said.bytes);
        table.insert(table.end(), {said.rank, 0, said.before});
        if (has_texts) table.push_back(said.bytes_before);
        const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ranks.clear();
        data.clear();
        create({100, 100});
        std::atomic<bool> is_over{false};
        for (const auto &rank : ranks) {
            rank->pair_options.interrupted_context = &is_over;
            rank->pair_options.interrupted = [](void *flag) { return static_cast<std::atomic<bool> *>(flag)->load(); };
        }
        const off_t table_at = RING_OFFSET + (1 << 16), entry_at = table_at + (has_texts ? 24 : 16);
        const auto stored = [&] {
            uint64_t arrived = 0;
            return pread(fd, &arrived, 8, entry_at + 8) == 8 ? arrived : 0; /* it has no bytes before the opening */
        };
        change<card>(CARDS, [&](card &card) {
            offer(card, fd);
            EXPECT_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
            EXPECT_EQ(24, pwrite(fd, said.words.data(), 24, WORDS_OFFSET));
            EXPECT_LT(0, pwrite(fd, table.data(), table.size() * sizeof table[0], table_at));
        });
        run([&](int number, ExchangeRank &rank) {
            std::thread ending;
            if (number == 1)
                ending = std::thread([&] {
                    wait_until("an end", [&] { return is_over || stored() != 0; });
                    is_over = true;
                });
            if (rank.open(*network, number, &options) == SUPPLY_OK) rank.read_epoch(shape);
            await_task(number);
            is_over = true;
            if (number == 1) ending.join();
            /* Interrupted, supply_close() would wait no longer, and leave it to the next call to free the handle. */
            supply_abort(rank.handle.release(), "the test is over");
        });
        const uint64_t arrived = stored();
        close(fd);
        return arrived;
    }

    /** Rank 1 refuses each of these changes of what rank 0 says. */
    void expect_refused(const Said &said, bool has_texts, const std::vector<std::function<void(Said &)>> &changes) {
        EXPECT_EQ(2u, run_with(said, has_texts)) << "without a change, rank 1 copies: " << ranks[1]->error;
        for (size_t i = 0; i < changes.size(); i++) {
            SCOPED_TRACE(i);
            Said changed = said;
            changes[i](changed);
            EXPECT_EQ(0u, run_with(changed, has_texts));
            EXPECT_EQ(SUPPLY_ERROR_CONTRACT, ranks[1]->status) << ranks[1]->error;
            EXPECT_TRUE(says(ranks[1]->error, {"rank 0", "outside of its ring"}));
            EXPECT_EQ(SUPPLY_INTERRUPTED, ranks[0]->status) << ranks[0]->error;
        }
    }

    /** Operations at the opening, and in the first window. */
    enum { OPENED, CARDS, LINKS, AGREED, OFFERED, GRANTED, MOVED };
};

TEST_F(ExchangeNeighboursTest, NothingIsLeftForTheTransport) {
    shape = Shape::every;
    create({300, 200, 100});
    options.window_bytes = 2000;
    run_all();
    expect_once();
    EXPECT_EQ(0u, network->most_received());
}

TEST_F(ExchangeNeighboursTest, OneRankMayHaveNone) {
    create({300, 200, 100});
    options.window_bytes = 2000;
    run([this](int number, ExchangeRank &rank) {
        supply_exchange_options_t own = options;
        own.messages_only = number == 1;
        if (rank.open(*network, number, &own) == SUPPLY_OK) rank.read_all(shape);
    });
    expect_once();
    EXPECT_GT(network->most_received(), 0u);
}

/* Messages and copies arrive in turns in each buffer. */
TEST_F(ExchangeNeighboursTest, RanksOfThreeNodesInTurns) {
    for (const Shape each : {Shape::fixed, Shape::every, Shape::nested}) {
        ranks.clear();
        data.clear();
        shape = each;
        options.window_bytes = 3000;
        create({300, 0, 200, 100, 50, 1, 250});
        spread([](size_t rank) { return rank % 3; });
        run_all();
        expect_once();
        EXPECT_GT(network->most_received(), 0u);
    }
}

/* A rank that cannot map another's ring sends it messages, and still gets its elements in the slot. */
TEST_F(ExchangeNeighboursTest, ACardOfAnotherMachineOrNamespaceOrMemory) {
    const std::vector<std::function<void(card &)>> changes = {
        [](card &card) { card.machine++; },
        [](card &card) { card.processes++; },
        [](card &card) { card.inode++; },
        [](card &card) { card.ring_bytes += 4096; },
        [](card &card) { card.descriptor = 1 << 20; },
        [](card &card) { card.process = 0; },
    };
    for (const auto &change_card : changes) {
        ranks.clear();
        data.clear();
        create({100, 100});
        change<card>(CARDS, change_card);
        run_all();
        expect_once();
        EXPECT_GT(network->most_received(), 0u);
    }
}

/* Memory that its owner could cut would end a rank that copies into it by SIGBUS. */
TEST_F(ExchangeNeighboursTest, MemoryWithoutASealIsNotMapped) {
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    create({100, 100});
    change<card>(CARDS, [fd](card &card) { offer(card, fd); });
    run_all();
    close(fd);
    expect_once();
    EXPECT_GT(network->most_received(), 0u);
}

/*
 * Rank 1 waits for rank 0's place, or for its elements, and sees at once that its process is dead. That process is a
 * child, which has its ring, too. One of them finds memory of the test instead of the other one's ring, and so no
 * place.
 */
TEST_F(ExchangeNeighboursTest, ANeighbourThatDiesIsNamed) {
    for (const bool has_place : {false, true}) {
        const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ranks.clear();
        data.clear();
        create({100, 100});
        std::atomic<bool> is_over{false};
        ranks[0]->pair_options.interrupted_context = &is_over;
        ranks[0]->pair_options.interrupted = [](void *flag) { return static_cast<std::atomic<bool> *>(flag)->load(); };
        for (const auto &rank : ranks) rank->pair_options.timeout = 300;
        pid_t child = 0;
        network->change(has_place ? 0 : 1, CARDS, sizeof(card), [&](void *cards) {
            offer(static_cast<card *>(cards)[has_place ? 1 : 0], fd);
            EXPECT_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
        });
        change<card>(CARDS, [&](card &card) {
            child = fork();
            while (child == 0) pause();
            card.process = child;
        });
        change<uint64_t>(LINKS, [&](uint64_t) { kill(child, SIGKILL); });
        const auto begin = std::chrono::steady_clock::now();
        run([&](int number, ExchangeRank &rank) {
            if (rank.open(*network, number, &options) == SUPPLY_OK) rank.read_epoch(shape);
            await_task(number);
            is_over = true;
            rank.handle.reset();
        });
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << "the limit is 600 s";
        EXPECT_EQ(SUPPLY_ERROR_SYSTEM, ranks[1]->status) << ranks[1]->error;
        const std::string words = "rank 0, process " + std::to_string(child) + " of this machine, has died";
        EXPECT_TRUE(says(ranks[1]->error, {words.c_str()}));
        EXPECT_EQ(SUPPLY_INTERRUPTED, ranks[0]->status) << ranks[0]->error;
        EXPECT_EQ(child, waitpid(child, nullptr, 0));
        close(fd);
    }
}

/* Larger memory than ulimit -f allows would end the rank by SIGXFSZ. */
TEST_F(ExchangeNeighboursTest, ALimitOfFileSizesLeavesMessages) {
    rlimit before, limited;
    ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &before));
    limited = before;
    limited.rlim_cur = 8 << 20;
    create({100, 100});
    setrlimit(RLIMIT_FSIZE, &limited);
    run_all();
    setrlimit(RLIMIT_FSIZE, &before);
    expect_once();
    EXPECT_GT(network->most_received(), 0u);
}

TEST_F(ExchangeNeighboursTest, APlaceOutsideOfTheRing) {
    expect_refused({}, false,
                   {
                       [](Said &said) { said.words[1] = UINT64_MAX; },
                       [](Said &said) { said.words[1] += 1; },
                       [](Said &said) { said.words[1] += 1 << 30; },
                       [](Said &said) { said.words[2] = UINT64_MAX - 7; },
                       [](Said &said) { said.words[2] += 4; },
                       [](Said &said) { said.words[2] += 1 << 30; },
                       [](Said &said) { said.senders = 0; },
                       [](Said &said) { said.senders = UINT64_MAX; },
                       [](Said &said) { said.rank = 0; },
                       [](Said &said) { said.elements = UINT64_MAX; },
                       [](Said &said) { said.elements = 1ull << 40; },
                       [](Said &said) { said.elements = 0; },
                       [](Said &said) { said.before = UINT64_MAX; },
                       [](Said &said) { said.before = said.elements; },
                   });
}

TEST_F(ExchangeNeighboursTest, TextsOutsideOfTheRing) {
    task_of = supply_texts;
    Said texts;
    texts.elements = 4;
    texts.before = 2;
    texts.bytes = 16;
    texts.bytes_before = 8;
    expect_refused(texts, true,
                   {
                       [](Said &said) { said.bytes = UINT64_MAX; },
                       [](Said &said) { said.bytes = 1ull << 40; },
                       [](Said &said) { said.bytes = 1ull << 30; },
                       [](Said &said) { said.bytes = 0; },
                       [](Said &said) { said.bytes_before = UINT64_MAX; },
                       [](Said &said) { said.bytes_before = said.bytes; },
                   });
}

/* A stream may end in the middle of an epoch: then no agreement follows its last window. */
TEST_F(ExchangeNeighboursTest, AFailureInTheLastWindowOfTheDataIsTheRanksOwn) {
    using Offer = std::array<uint64_t, 3>; /* elements, those left, bytes of the texts */
    create({0, 0});
    for (const auto &rank : ranks) rank->pair_options.timeout = 2;
    task_of = supply_texts;
    change<Offer>(OFFERED, [](Offer &offer) { offer[2]--; });
    run([this](int number, ExchangeRank &rank) {
        supply_block_t block;
        rank.status = rank.open(*network, number, &options);
        while (rank.status == SUPPLY_OK && (rank.status = supply_next(rank.handle.get(), &block)) == SUPPLY_OK)
            supply_release(rank.handle.get(), &block);
        rank.error = supply_error(rank.handle.get());
        await_task(number);
        rank.handle.reset();
    });
    EXPECT_EQ(SUPPLY_END_OF_DATA, ranks[0]->status) << ranks[0]->error;
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, ranks[1]->status) << ranks[1]->error;
    EXPECT_TRUE(says(ranks[1]->error, {"other lengths"}));
}

/* Only rank 0 lacks memory. Without it, a rank may take part in no step in which elements arrive. */
TEST_F(ExchangeNeighboursTest, MemoryThatCannotBeReservedIsAFailureOfAllRanks) {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const supply_exchange_policy_t policy : {SUPPLY_EXCHANGE_ALL, SUPPLY_EXCHANGE_HASH}) {
        int descriptor = -1;
        ranks.clear();
        data.clear();
        shape = Shape::every;
        options.policy = policy;
        options.column = policy == SUPPLY_EXCHANGE_HASH ? "id" : nullptr;
        create({400, 400, 400, 400});
        for (const auto &rank : ranks) rank->pair_options.timeout = 2;
        change<card>(CARDS, [&](const card &card) { descriptor = card.descriptor; });
        change<rank_state>(AGREED, [&](const rank_state &) { dup2(nothing, descriptor); });
        run([this](int number, ExchangeRank &rank) {
            supply_exchange_options_t own = options;
            own.messages_only = number == 3;
            if (rank.open(*network, number, &own) == SUPPLY_OK) rank.read_epoch(shape);
            await_task(number);
            rank.handle.reset();
        });
        expect_failure(SUPPLY_ERROR_MEMORY, {"rank 0", "pair 0", "cannot be reserved"});
    }
    close(nothing);
}

static int mapped_rings() {
    std::ifstream maps("/proc/self/maps");
    int rings = 0;
    for (std::string line; std::getline(maps, line);) rings += line.find("memfd:supply-ring") != std::string::npos;
    return rings;
}

TEST_F(ExchangeNeighboursTest, ARankAloneSharesNoMemory) {
    const int before = mapped_rings();
    create({100});
    run([&](int number, ExchangeRank &) {
        ASSERT_EQ(SUPPLY_OK, ranks[0]->open(*network, number, &options));
        EXPECT_EQ(before, mapped_rings());
        ranks[0]->read_all(shape);
    });
    expect_once();
}

/* MPI cannot take it back, but it uses no ring. */
TEST_F(ExchangeNeighboursTest, APendingOperationKeepsNoRing) {
    for (const uint64_t operation : {OFFERED, MOVED}) {
        const int before = mapped_rings();
        ranks.clear();
        data.clear();
        create({100, 100});
        for (const auto &rank : ranks) rank->pair_options.timeout = 0.2;
        network->fail_from(1, operation);
        run([this, operation](int number, ExchangeRank &rank) {
            supply_exchange_options_t own = options;
            own.messages_only = number == 1 && operation == MOVED;
            if (rank.open(*network, number, &own) == SUPPLY_OK) rank.read_epoch(shape);
            await_task(number);
            EXPECT_GT(mapped_rings(), 0);
            rank.handle.reset();
        });
        EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, ranks[0]->status) << ranks[0]->error;
        EXPECT_EQ(SUPPLY_ERROR_SYSTEM, ranks[1]->status) << ranks[1]->error;
        EXPECT_EQ(1, network->freed_while_pending());
        EXPECT_EQ(before, mapped_rings());
    }
}

/* The memory of a rank that has left stays there for those that have mapped it. */
TEST_F(ExchangeNeighboursTest, ARankThatLeavesDoesNotEndOthersBySignals) {
    has_thread = false;
    create({2000, 2000});
    options.window_bytes = 1000;
    for (const auto &rank : ranks) rank->pair_options.timeout = 0.5;
    run_opened([&](int number, ExchangeRank &rank) {
        supply_block_t block;
        for (int i = 0; i < 3 && supply_next(rank.handle.get(), &block) == SUPPLY_OK; i++)
            supply_release(rank.handle.get(), &block);
        if (number == 1) rank.read_epoch(shape);
        rank.handle.reset();
    });
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, ranks[1]->status) << ranks[1]->error;
}

} // namespace supply_test
