// Results: columns of a held block whose offsets the task changes while the rank writes them.
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "result_rows.h"

namespace supply_test {
namespace {

/** Offsets whose first use changes others: in a page that cannot be read until then. */
class TrappedOffsets {
  public:
    /** At that use, the offsets that `changed` points to grow by `shift`. */
    TrappedOffsets(const std::vector<int32_t> &offsets, std::vector<int32_t> &changed, int32_t shift)
        : bytes(static_cast<size_t>(sysconf(_SC_PAGESIZE))), to_change(&changed), by(shift) {
        void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page = mapped == MAP_FAILED ? nullptr : static_cast<int32_t *>(mapped);
        if (page == nullptr) throw std::bad_alloc();
        memcpy(page, offsets.data(), offsets.size() * sizeof offsets[0]);
        mprotect(page, bytes, PROT_NONE);
        current = this;
        struct sigaction action = {};
        action.sa_handler = [](int) { current->spring(); };
        sigaction(SIGSEGV, &action, &before);
    }
    TrappedOffsets(const TrappedOffsets &) = delete;
    TrappedOffsets &operator=(const TrappedOffsets &) = delete;
    ~TrappedOffsets() {
        sigaction(SIGSEGV, &before, nullptr);
        munmap(page, bytes);
    }

    const int32_t *get() const { return page; }
    bool has_sprung() const { return sprung != 0; }

  private:
    /** A signal handler. A second fault is not of the trap. */
    void spring() {
        if (sprung != 0) abort();
        sprung = 1;
        for (int32_t &offset : *to_change) offset += by;
        mprotect(page, bytes, PROT_READ);
    }

    static TrappedOffsets *current;
    size_t bytes;
    std::vector<int32_t> *to_change;
    int32_t by;
    int32_t *page = nullptr;
    struct sigaction before = {};
    volatile sig_atomic_t sprung = 0;
};

TrappedOffsets *TrappedOffsets::current = nullptr;

using ResultHostileTest = ResultTest;

TEST_F(ResultHostileTest, WhatWasCheckedIsWhatIsWritten) {
    // The second half lies after the block, in memory of the rank.
    const std::string block_and_more = "abcdefSECRET";
    Column text = Column::variable("text", "u", {"ab", "cdef"}), last = Column::variable("last", "u", {"x", "y"});
    Handle handle = open();
    Result result = begin(handle, {text, last});
    const std::vector<Column> columns = {text, last};
    std::vector<supply_column_t> rows = rows_of(columns, 2);
    std::vector<int32_t> shared = text.offsets;
    const TrappedOffsets trap(last.offsets, shared, 6);
    rows[0].offsets = shared.data();
    rows[0].data = block_and_more.data();
    rows[0].data_bytes = 6;
    rows[1].offsets = trap.get();
    ASSERT_EQ(SUPPLY_OK, supply_result_write(result.get(), rows.data(), 2)) << supply_result_error(result.get());
    EXPECT_TRUE(trap.has_sprung());
    EXPECT_EQ(6, shared[0]);
    seal(result);
    const ResultFile read = read_result(path());
    EXPECT_EQ("ab", read.columns.at(0).values.at(0));
    EXPECT_EQ("cdef", read.columns.at(0).values.at(1));
}

TEST_F(ResultHostileTest, WithoutRowsNoOffsetIsRead) {
    const std::vector<Column> columns = {Column::variable("text", "u", {})};
    Handle handle = open();
    Result result = begin(handle, columns);
    std::vector<supply_column_t> rows = rows_of(columns, 0);
    std::vector<int32_t> none;
    const TrappedOffsets trap({0}, none, 0);
    rows[0].offsets = trap.get();
    ASSERT_EQ(SUPPLY_OK, supply_result_write(result.get(), rows.data(), 1)) << supply_result_error(result.get());
    EXPECT_FALSE(trap.has_sprung());
}

} // namespace
} // namespace supply_test
