// A rank elsewhere: what comes over its connection is what comes from a task beside it, and nothing else does.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "link_task.h"
#include "rank.h"
#include "supply_result.h"

extern "C" {
#include "api/handle.h"
#include "net/proof.h"
}

namespace supply_test {
namespace {

/** If it is not empty, each name has one more address in front: a port of this node. */
std::string first_port;

} // namespace
} // namespace supply_test

extern "C" int getaddrinfo(const char *name, const char *port, const addrinfo *hints, addrinfo **found) {
    const auto find = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    const std::string &first = supply_test::first_port;
    if (first.empty()) return find(name, port, hints, found);
    const int error = find("127.0.0.1", first.c_str(), hints, found);
    return error != 0 ? error : find(name, port, hints, &(*found)->ai_next);
}

namespace supply_test {
namespace {

class LinkTest : public ::testing::Test {
  protected:
    LinkTest() : address(task.address()) {
        supply_options_init(&options);
        options.connect = address.c_str();
        options.key = "a key";
        options.rank = 3;
        options.ranks = 4;
        options.timeout = 300;
        options.block_bytes = 8192;
        options.ring_bytes = 4 * 8192;
    }

    Handle open(supply_status_t expected = SUPPLY_OK) {
        supply_t *supply = nullptr;
        EXPECT_EQ(expected, supply_open(&supply, &options)) << supply_error(supply);
        return Handle(supply);
    }

    void meet() { end.emplace_back(task.meet(&header)); }
    void cut() { end.clear(); }
    void send(uint64_t sequence) {
        LinkTask::notice(end[0], LINK_BLOCK, LinkTask::block(header, sequence, image(sequence)));
    }
    static std::vector<Element> elements(uint64_t sequence) { return {numbered_element(sequence)}; }
    static BlockImage image(uint64_t sequence) { return datum_block(elements(sequence)); }
    void send_schema() { task.send_schema(end[0], header, datum_columns(elements(0))); }
    void send_end(uint64_t sequence, uint32_t kind) {
        LinkTask::notice(end[0], LINK_BLOCK, LinkTask::end(header, sequence, kind));
    }
    /** Reads credits until the rank has released that number. */
    void expect_released(uint64_t number) {
        while (LinkTask::request(end[0], LINK_CREDIT).head.released < number) {
        }
    }
    void confirm() {
        header.end_seen = 1;
        LinkTask::notice(end[0], LINK_HEADER, std::string(reinterpret_cast<char *>(&header), sizeof header));
        LinkTask::notice(end[0], LINK_LEFT);
    }
    static void expect_block(const Handle &handle, uint64_t sequence) {
        supply_block_t block;
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        EXPECT_EQ(sequence, block.sequence);
        supply_column_t column;
        ASSERT_STATUS(SUPPLY_OK, supply_column_named(handle.get(), &block, "data", "z", &column), handle);
        const void *data;
        size_t bytes;
        ASSERT_EQ(SUPPLY_OK, supply_value(&column, 0, &data, &bytes));
        EXPECT_EQ(elements(sequence)[0].data, std::string(static_cast<const char *>(data), bytes));
        EXPECT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
    }
    /** The first block has come over a new connection. */
    void meet_with_a_block(const Handle &handle) {
        meet();
        send_schema();
        send(0);
        expect_block(handle, 0);
    }
    void expect_failure(const Handle &handle, std::initializer_list<const char *> words) {
        supply_block_t block;
        supply_status_t status;
        while ((status = supply_next(handle.get(), &block)) == SUPPLY_OK) supply_release(handle.get(), &block);
        EXPECT_LT(status, 0);
        EXPECT_TRUE(says(supply_error(handle.get()), words));
    }

    LinkTask task;
    std::string address;
    supply_options_t options;
    mapped_file_header header = {};
    std::vector<LinkEnd> end;
};

TEST_F(LinkTest, BlocksAndEndsComeAsFromATaskBesideTheRank) {
    Handle handle = open();
    meet();
    EXPECT_EQ(3, header.rank);
    EXPECT_EQ(4u, header.block_count);
    send_schema();
    for (uint64_t i = 0; i < 4; i++) send(i);
    for (uint64_t i = 0; i < 4; i++) expect_block(handle, i);
    expect_released(4);
    send_end(4, NOTIFICATION_END_OF_EPOCH);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    std::thread later([&] {
        while (LinkTask::request(end[0], LINK_CREDIT).head.acknowledged < 5) {
        }
        send(5);
        send_end(6, NOTIFICATION_END_OF_DATA);
    });
    expect_block(handle, 5);
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    later.join();
    expect_released(7);
    confirm();
    EXPECT_EQ(SUPPLY_OK, supply_close(handle.release()));
    EXPECT_TRUE(end[0].has_ended());
}

TEST_F(LinkTest, AfterTheLossOfAConnectionItGoesOnWithWhatHasNotCome) {
    Handle handle = open();
    meet_with_a_block(handle);
    const std::string whole = LinkTask::block(header, 1, image(1));
    // Each time within the block: in its notice, its header, its last byte.
    for (const size_t part : {size_t{0}, size_t{100}, whole.size() - 1}) {
        const link_notice notice = {LINK_BLOCK, static_cast<uint32_t>(whole.size())};
        end[0].write(std::string(reinterpret_cast<const char *>(&notice), part == 0 ? 5 : sizeof notice) +
                     whole.substr(0, part));
        cut();
        meet();
        EXPECT_EQ(1u, header.published);
        EXPECT_EQ(1u, header.released);
        send_schema();
    }
    for (uint64_t i = 1; i < 4; i++) send(i);
    for (uint64_t i = 1; i < 4; i++) expect_block(handle, i);
    EXPECT_EQ(SUPPLY_OK, supply_abort(handle.release(), "enough"));
}

TEST_F(LinkTest, ATaskThatLeavesIsLookedForAgain) {
    Handle handle = open();
    meet();
    send_schema();
    LinkTask::notice(end[0], LINK_LEFT);
    EXPECT_EQ("\n", task.answer(2, "").substr(0, 1)) << "the run's only data has no name";
    cut();
    meet_with_a_block(handle);
    supply_abort(handle.release(), "enough");
}

TEST_F(LinkTest, TheHubSaysWhyARankGetsNothing) {
    Handle handle = open();
    task.answer(1, "this run has 2 ranks");
    expect_failure(handle, {"this run has 2 ranks"});
    Handle other = open();
    task.answer(0, task.place());
    LinkEnd executor = task.accept(4);
    LinkTask::request(executor);
    LinkTask::notice(executor, LINK_REFUSED, "rank 3 is connected already");
    expect_failure(other, {"rank 3 is connected already"});
}

TEST_F(LinkTest, ABusyTaskIsAskedAgain) {
    Handle handle = open();
    {
        task.answer(0, task.place());
        LinkEnd executor = task.accept(4);
        LinkTask::request(executor);
        LinkTask::notice(executor, LINK_BUSY, "another executor has it");
    }
    meet_with_a_block(handle);
    supply_abort(handle.release(), "enough");
}

TEST_F(LinkTest, AnotherKeyIsAFailure) {
    options.key = "another key";
    Handle handle = open();
    task.accept(3);
    expect_failure(handle, {"SUPPLY_KEY"});
}

TEST_F(LinkTest, TheFailureOfTheRankReachesTheTask) {
    Handle handle = open();
    meet();
    supply_abort(handle.release(), "the model diverges");
    EXPECT_EQ("the model diverges", LinkTask::request(end[0], LINK_STOP).payload);
}

TEST_F(LinkTest, AWriteThatHasEndedIsTheEndOfARankThatHasAll) {
    Handle handle = open();
    meet();
    send_schema();
    send(0);
    send_end(1, NOTIFICATION_END_OF_DATA);
    expect_block(handle, 0);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    cut();
    task.answer(3, "the run run has ended");
    EXPECT_EQ(SUPPLY_OK, supply_close(handle.release()));
}

TEST_F(LinkTest, AWriteThatHasEndedBeforeIsFollowedByTheNext) {
    Handle handle = open();
    task.answer(3, "the run run has ended");
    task.answer(3, "the run run has ended");
    meet_with_a_block(handle);
    supply_abort(handle.release(), "enough");
}

TEST_F(LinkTest, TheTimeLimitOfTheNextWriteGoesOn) {
    options.timeout = 1;
    Handle handle = open();
    task.answer(3, "the run run has ended");
    expect_failure(handle, {"the run run has ended, and no other has begun yet", "SUPPLY_TIMEOUT"});
}

TEST_F(LinkTest, AWriteThatHasEndedIsAFailureOfARankThatLacksSome) {
    Handle handle = open();
    meet_with_a_block(handle);
    cut();
    task.answer(3, "the run run has ended");
    expect_failure(handle, {"the run run has ended"});
    EXPECT_EQ(SUPPLY_ERROR_SPARK, supply_status(handle.get()));
}

TEST_F(LinkTest, WhoKnowsThatNothingMoreComesEndsTheWait) {
    Handle handle = open();
    meet_with_a_block(handle);
    supply__link_fail(handle->pair.link, "the driver has ended");
    expect_failure(handle, {"the driver has ended"});
}

TEST_F(LinkTest, WithoutATaskTheTimeLimitSaysWhatIsMissing) {
    options.timeout = 0.5;
    const std::string nobody = "supply://127.0.0.1:1/run";
    options.connect = nobody.c_str();
    Handle handle = open();
    expect_failure(handle, {"rank 3 (supply://127.0.0.1:1/run)", "refused", "SUPPLY_TIMEOUT"});
}

TEST_F(LinkTest, AnAddressThatIsNoneIsRefusedAtOnce) {
    for (const char *wrong :
         {"", "driver:1/run", "supply://driver/run", "supply://driver:1", "supply://driver:1/", "supply://driver:x/run",
          "supply://:1/run", "supply://driver:1/a/b/c", "supply://driver:1/a b", "http://driver:1/run"}) {
        options.connect = wrong;
        EXPECT_TRUE(says(supply_error(open(SUPPLY_ERROR_CONFIG).get()), {"supply://HOST:PORT/RUN"})) << wrong;
    }
    options.connect = address.c_str();
    options.key = nullptr;
    EXPECT_TRUE(says(supply_error(open(SUPPLY_ERROR_CONFIG).get()), {"SUPPLY_KEY"}));
}

struct Wrong {
    const char *name;
    uint32_t kind;
    uint64_t bytes;
    const char *word;
};

class HostileLinkTest : public LinkTest, public ::testing::WithParamInterface<Wrong> {};

TEST_P(HostileLinkTest, ALengthIsNeverTrusted) {
    Handle handle = open();
    meet();
    const link_notice notice = {GetParam().kind, static_cast<uint32_t>(GetParam().bytes)};
    end[0].write(std::string(reinterpret_cast<const char *>(&notice), sizeof notice) + std::string(4096, 'x'));
    expect_failure(handle, {"broke the contract", GetParam().word});
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostileLinkTest,
                         ::testing::Values(Wrong{"block", LINK_BLOCK, 8193, "8193 bytes"},
                                           Wrong{"short_block", LINK_BLOCK, 127, "127 bytes"},
                                           Wrong{"strange_block", LINK_BLOCK, 4096, "has come as 0"},
                                           Wrong{"schema", LINK_SCHEMA, SCHEMA_BYTES_MAX + 1, "schema"},
                                           Wrong{"empty_schema", LINK_SCHEMA, 0, "schema"},
                                           Wrong{"header", LINK_HEADER, 4095, "header"},
                                           Wrong{"answer", LINK_KEPT, 1025, "text"},
                                           Wrong{"long_answer", LINK_KEPT, 1u << 31, "text"},
                                           Wrong{"kind", 99, 0, "99"}),
                         [](const auto &info) { return info.param.name; });

TEST_F(LinkTest, ABlockWithoutCreditIsNotStored) {
    Handle handle = open();
    meet();
    send_schema();
    for (uint64_t i = 0; i < 5; i++) send(i);
    supply_block_t held, block;
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &held), handle);
    supply_status_t status;
    while ((status = supply_next(handle.get(), &block)) == SUPPLY_OK || status == SUPPLY_ERROR_ALL_HELD) {
    }
    EXPECT_EQ(SUPPLY_ERROR_SPARK, status) << supply_error(handle.get());
    EXPECT_TRUE(says(supply_error(handle.get()), {"block 4", "without credit"}));
}

TEST_F(LinkTest, ASecondAttemptWithOtherColumnsIsRefused) {
    Handle handle = open();
    meet_with_a_block(handle);
    cut();
    meet();
    task.send_schema(end[0], header, {Column::int32("other", {1})});
    expect_failure(handle, {"other columns"});
}

class LinkResultTest : public LinkTest {
  protected:
    /** More than a connection holds: its link waits within a frame until the executor reads. */
    static constexpr size_t kMany = 6 << 20;

    static supply_result_t *begin(const Handle &handle, size_t rows = 3, supply_status_t expected = SUPPLY_OK) {
        supply_result_t *result = nullptr;
        supply_field_t field = {};
        field.name = "id";
        field.format = "i";
        EXPECT_EQ(expected, supply_result_open(&result, handle.get(), "scores", &field, 1))
            << supply_result_error(result);
        if (expected != SUPPLY_OK) return result;
        const std::vector<int32_t> ids(rows, 1);
        supply_column_t column = {};
        column.format = "i";
        column.element_count = static_cast<uint32_t>(rows);
        column.data = ids.data();
        column.data_bytes = rows * sizeof ids[0];
        EXPECT_EQ(SUPPLY_OK, supply_result_write(result, &column, 1)) << supply_result_error(result);
        return result;
    }
    /** The executor gets all of a result, and keeps it. Returns its file. */
    std::string keep() {
        std::string file = received(LINK_RESULT_SEAL);
        LinkTask::notice(end[0], LINK_KEPT);
        return file;
    }
    /** What of a result has come until that kind of request. */
    std::string received(uint32_t until, std::string *last = nullptr) {
        EXPECT_EQ("scores", LinkTask::request(end[0], LINK_RESULT).payload);
        return rest(until, last);
    }
    /** The same when it has begun. */
    std::string rest(uint32_t until, std::string *last = nullptr) {
        std::string file;
        for (;;) {
            const Request request = LinkTask::request(end[0]);
            if (request.head.kind == LINK_CREDIT) continue;
            if (request.head.kind == until) {
                if (last != nullptr) *last = request.payload;
                return file;
            }
            EXPECT_EQ(static_cast<uint32_t>(LINK_RESULT_BYTES), request.head.kind);
            file += request.payload;
        }
    }
};

TEST_F(LinkResultTest, AResultGoesToTheExecutorAlsoAfterALostConnection) {
    Handle handle = open();
    meet();
    supply_result_t *result = begin(handle);
    std::thread sealing([&] { EXPECT_EQ(SUPPLY_OK, supply_result_seal(result)); });
    const std::string first = received(LINK_RESULT_SEAL);
    cut();
    meet();
    const std::string second = received(LINK_RESULT_SEAL);
    EXPECT_EQ(first, second);
    LinkTask::notice(end[0], LINK_KEPT);
    sealing.join();
    EXPECT_EQ("SUPBLK\r\n", second.substr(0, 8));
    EXPECT_EQ(1u, reinterpret_cast<const mapped_file_header *>(second.data())->sealed);
    EXPECT_EQ(3u, reinterpret_cast<const mapped_file_header *>(second.data())->epoch_elements);
    // The end of the data is released when the rank closes.
    send_end(0, NOTIFICATION_END_OF_DATA);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    std::thread closing([&] { EXPECT_EQ(SUPPLY_OK, supply_close(handle.release())); });
    expect_released(1);
    confirm();
    closing.join();
}

TEST_F(LinkResultTest, WhyAResultIsNotKeptAndWhyThereIsNone) {
    Handle handle = open();
    meet();
    supply_result_t *result = begin(handle);
    std::thread sealing([&] {
        EXPECT_EQ(SUPPLY_ERROR_SPARK, supply_result_seal(result));
        EXPECT_TRUE(says(supply_result_error(result), {"no space on executor-1"}));
        supply_result_abort(result, "not kept");
    });
    received(LINK_RESULT_SEAL);
    LinkTask::notice(end[0], LINK_KEPT, "no space on executor-1");
    std::string reason;
    received(LINK_RESULT_ABORT, &reason);
    LinkTask::notice(end[0], LINK_KEPT);
    sealing.join();
    EXPECT_EQ("not kept", reason);
    supply_abort(handle.release(), "enough");
}

TEST_F(LinkResultTest, OneThatIsWrittenIsNotBegunAgain) {
    Handle handle = open();
    meet();
    supply_result_t *result = begin(handle), *again = begin(handle, 0, SUPPLY_ERROR_IN_USE);
    EXPECT_TRUE(says(supply_result_error(again), {"scores", "in use", std::to_string(getpid()).c_str()}));
    supply_result_abort(again, "it has not begun");
    std::thread aborting([&] { supply_result_abort(result, ""); });
    std::string reason;
    received(LINK_RESULT_ABORT, &reason);
    EXPECT_EQ("the rank did not say why", reason);
    LinkTask::notice(end[0], LINK_KEPT);
    aborting.join();
    again = begin(handle);
    std::thread sealing([&] { EXPECT_EQ(SUPPLY_OK, supply_result_seal(again)); });
    keep();
    sealing.join();
    supply_abort(handle.release(), "enough");
}

TEST_F(LinkResultTest, AStopIsHeardBetweenTheFramesOfAResult) {
    Handle handle = open();
    meet();
    supply_result_t *result = begin(handle, kMany);
    std::thread sealing([&] {
        EXPECT_EQ(SUPPLY_ERROR_SPARK, supply_result_seal(result));
        supply_result_abort(result, "not kept");
    });
    LinkTask::request(end[0], LINK_RESULT);
    supply__pair_stop(&handle->pair, "the model diverges");
    supply__link_fail(handle->pair.link, "the driver has ended");
    std::string reason;
    EXPECT_GT(kMany * sizeof(int32_t), rest(LINK_RESULT_ABORT, &reason).size());
    EXPECT_EQ("the rank has given it up", reason);
    EXPECT_EQ("the model diverges", LinkTask::request(end[0], LINK_STOP).payload);
    EXPECT_TRUE(end[0].has_ended());
    sealing.join();
}

TEST_F(LinkResultTest, AnInterruptedSealMayBeRepeated) {
    std::atomic<bool> wanted{false};
    options.interrupted_context = &wanted;
    options.interrupted = [](void *context) { return static_cast<std::atomic<bool> *>(context)->load(); };
    Handle handle = open();
    meet();
    supply_result_t *result = begin(handle, kMany);
    std::thread sealing([&] { EXPECT_EQ(SUPPLY_INTERRUPTED, supply_result_seal(result)); });
    LinkTask::request(end[0], LINK_RESULT);
    wanted = true;
    sealing.join();
    wanted = false;
    std::thread again([&] { EXPECT_EQ(SUPPLY_OK, supply_result_seal(result)); });
    std::string reason;
    rest(LINK_RESULT_ABORT, &reason);
    EXPECT_EQ("the rank has given it up", reason);
    LinkTask::notice(end[0], LINK_KEPT, "the answer to the first");
    EXPECT_LT(kMany * sizeof(int32_t), keep().size());
    again.join();
    supply_abort(handle.release(), "enough");
}

TEST_F(LinkResultTest, TheTimeLimitBeginsAgainWithEachPiece) {
    options.timeout = 3;
    Handle handle = open();
    meet();
    supply_result_t *result = begin(handle, kMany);
    std::thread sealing([&] { EXPECT_EQ(SUPPLY_OK, supply_result_seal(result)) << supply_result_error(result); });
    LinkTask::request(end[0], LINK_RESULT);
    for (int i = 0; i < 4; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(900));
        LinkTask::request(end[0], LINK_RESULT_BYTES);
    }
    rest(LINK_RESULT_SEAL);
    LinkTask::notice(end[0], LINK_KEPT);
    sealing.join();
    supply_abort(handle.release(), "enough");
}

TEST_F(LinkResultTest, ItIsKeptAlsoWhileThePipeIsFull) {
    const uint64_t blocks = 1100; // A pipe has at most 64 KiB: 1024 of them.
    options.ring_bytes = blocks * options.block_bytes;
    Handle handle = open();
    meet();
    send_schema();
    for (uint64_t i = 0; i < blocks; i++) send(i);
    const uint64_t *published = &handle->pair.mapped_file.header->published;
    while (__atomic_load_n(published, __ATOMIC_ACQUIRE) < blocks) std::this_thread::yield();
    supply_result_t *result = begin(handle);
    std::thread sealing([&] { EXPECT_EQ(SUPPLY_OK, supply_result_seal(result)); });
    keep();
    sealing.join();
    for (uint64_t i = 0; i < blocks; i++) expect_block(handle, i);
    supply_abort(handle.release(), "enough");
}

/** Its queue is full: the connection of one more is not answered. */
class SilentListener {
  public:
    SilentListener() : listener_(socket(AF_INET, SOCK_STREAM, 0)), first_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in name = {};
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof name;
        auto *address = reinterpret_cast<sockaddr *>(&name);
        EXPECT_EQ(0, bind(listener_, address, bytes));
        EXPECT_EQ(0, listen(listener_, 0));
        EXPECT_EQ(0, getsockname(listener_, address, &bytes));
        EXPECT_EQ(0, connect(first_, address, bytes));
        first_port = std::to_string(ntohs(name.sin_port));
    }
    ~SilentListener() {
        first_port.clear();
        close(first_);
        close(listener_);
    }
    SilentListener(const SilentListener &) = delete;
    SilentListener &operator=(const SilentListener &) = delete;

  private:
    const int listener_, first_;
};

TEST(ConnectionTest, AnAddressThatAnswersNothingLeavesTheNextItsTime) {
    const SilentListener silent;
    LinkTask task;
    address where;
    failure why;
    ASSERT_EQ(SUPPLY_OK, supply__address_read(&where, task.address().c_str(), "a key", &why));
    std::thread hub([&] { task.accept(ROLE_PLACE); });
    connection made;
    EXPECT_EQ(SUPPLY_OK, supply__connection_open(&made, &where, ROLE_PLACE, -1, 3, &why)) << why.text;
    supply__connection_close(&made);
    hub.join();
}

/* A function of atexit() from before OpenSSL's first use runs after those of OpenSSL. */
TEST(TlsTest, OpensslWorksUntilTheProcessEnds) {
    static const auto begin = [] {
        struct tls *tls = nullptr;
        failure why;
        return supply__tls_begin(&tls, STDIN_FILENO, &why);
    };
    EXPECT_EXIT(
        {
            atexit([] { _exit(begin()); });
            const supply_status_t status = begin();
            exit(status == SUPPLY_ERROR_CONFIG ? SUPPLY_OK : status); // There is none here.
        },
        ::testing::ExitedWithCode(SUPPLY_OK), "");
}

TEST(ProofTest, DigestsAreThoseOfTheStandards) {
    const auto hex = [](const uint8_t *digest) {
        std::string text;
        for (int i = 0; i < DIGEST_BYTES; i++) {
            char two[3];
            snprintf(two, sizeof two, "%02x", digest[i]);
            text += two;
        }
        return text;
    };
    uint8_t digest[DIGEST_BYTES];
    supply__sha256("abc", 3, digest); // FIPS 180-2, B.1 and B.2
    EXPECT_EQ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", hex(digest));
    const std::string two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    supply__sha256(two.data(), two.size(), digest);
    EXPECT_EQ("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", hex(digest));
    uint8_t key[DIGEST_BYTES] = {}; // RFC 4231, 4.3, whose key is shorter: the rest is zero
    std::copy_n("Jefe", 4, key);
    const proof_part parts[] = {{"what do ya want ", 16}, {"for nothing?", 12}};
    supply__proof(key, parts, 2, digest);
    EXPECT_EQ("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", hex(digest));
    EXPECT_TRUE(supply__digests_equal(digest, digest));
    digest[31] ^= 1;
    EXPECT_FALSE(supply__digests_equal(digest, key));
}

} // namespace
} // namespace supply_test
