/** Columns with children in an exchange: they arrive whole, and what is not packed as such is refused. */
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "exchange_ranks.h"

extern "C" {
#include "children.h"
}

namespace supply_test {

class ExchangeChildrenTest : public ExchangeTest {
  protected:
    ExchangeChildrenTest() {
        shape = Shape::nested;
        options.window_bytes = 3000;
    }
};

TEST_F(ExchangeChildrenTest, EachRowArrivesOnce) {
    options.policy = SUPPLY_EXCHANGE_ALL;
    create({200, 201, 0, 200}, 2);
    run_all();
    expect_once(2);
}

TEST_F(ExchangeChildrenTest, OneRankReceivesItsOwn) {
    options.policy = SUPPLY_EXCHANGE_ALL;
    create({100});
    run_all();
    expect_once();
}

TEST_F(ExchangeChildrenTest, RowsGoByTheHashOfAnotherColumn) {
    options.policy = SUPPLY_EXCHANGE_HASH;
    options.column = "id";
    create({200, 100, 50});
    run_all();
    expect_once();
}

TEST_F(ExchangeChildrenTest, RowsAreSortedInMemoryAndFromFiles) {
    TemporaryFolder folder;
    const std::string spill_folder = folder.path();
    options.policy = SUPPLY_EXCHANGE_RANGE;
    options.column = "id";
    options.spill_folder = spill_folder.c_str();
    for (const size_t memory_bytes : {size_t{1} << 24, size_t{20000}}) {
        options.memory_bytes = memory_bytes;
        create({400, 300});
        for (Supplied &of : data) std::reverse(of.ids.begin(), of.ids.end());
        run_all();
        expect_once();
        std::vector<int64_t> all;
        for (const auto &rank : ranks) all.insert(all.end(), rank->epochs[0].begin(), rank->epochs[0].end());
        EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
        ranks.clear();
        data.clear();
    }
}

TEST_F(ExchangeChildrenTest, TheyAreNoKeys) {
    options.policy = SUPPLY_EXCHANGE_HASH;
    options.column = "point";
    create({10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"'point'", "'+s'", "no keys"});
}

/** A block as it arrives, with one packed column: of each element a list of structs. */
class UnpackTest : public ::testing::Test {
  protected:
    UnpackTest() {
        std::vector<Column> of = {Column::parent("list", "+l", 1, {0}),
                                  Column::parent("item", "+s", 4),
                                  Column::fixed("number", "s", ""),
                                  Column::variable("text", "u", {}),
                                  Column::bits("flag", {}),
                                  Column::parent("pair", "+w:2", 1),
                                  Column::int32("item", {})};
        of[3].validity = "x";
        const std::vector<schema_entry> entries = schema_of(of);
        struct failure failure = {};
        EXPECT_EQ(SUPPLY_OK, exchange_columns_set(&columns, entries.data(), static_cast<uint32_t>(entries.size()), 0,
                                                  "test", &failure))
            << failure.text;
        EXPECT_EQ(1u, columns.schema.count);
    }
    ~UnpackTest() override { exchange_columns_free(&columns); }

    static std::string number(uint32_t value) { return std::string(reinterpret_cast<const char *>(&value), 4); }

    static std::string item(int16_t number_of, const std::string &text, bool flag) {
        return std::string(reinterpret_cast<const char *>(&number_of), 2) + '\1' + number(text.size()) + text +
               std::string(1, flag ? '\1' : '\0') + number(7) + number(8);
    }

    /** The block with these packed elements, and then with its children. */
    supply_status_t unpack(const std::vector<std::string> &elements,
                           const std::function<void(block_column &, int32_t *)> &change = nullptr) {
        const size_t header = supply__block_header_bytes(1);
        std::vector<int32_t> offsets = {0};
        std::string data;
        for (const std::string &element : elements) {
            data += element;
            offsets.push_back(static_cast<int32_t>(data.size()));
        }
        memory.assign(8192 + 2 * BUFFER_ALIGNMENT, 0xA5);
        address = memory.data() + (BUFFER_ALIGNMENT - reinterpret_cast<uintptr_t>(memory.data()) % BUFFER_ALIGNMENT);
        block_column column = {};
        column.offsets_offset = static_cast<uint32_t>(header);
        column.offsets_bytes = static_cast<uint32_t>(offsets.size() * 4);
        column.data_offset = column.offsets_offset + static_cast<uint32_t>(supply__aligned(column.offsets_bytes));
        column.data_bytes = static_cast<uint32_t>(data.size());
        memcpy(address + sizeof(block_header), &column, sizeof column);
        memcpy(address + column.offsets_offset, offsets.data(), column.offsets_bytes);
        memcpy(address + column.data_offset, data.data(), data.size());
        if (change)
            change(*reinterpret_cast<block_column *>(address + sizeof(block_header)),
                   reinterpret_cast<int32_t *>(address + header));
        size_t bytes = column.data_offset + supply__aligned(data.size());
        const struct slot slot = {address, slot_bytes};
        failure = {};
        return exchange_children_unpack(&columns, &slot, static_cast<uint32_t>(elements.size()), &bytes, &failure);
    }

    block_column column(size_t index) const {
        block_column column;
        memcpy(&column, address + sizeof(block_header) + index * sizeof column, sizeof column);
        return column;
    }

    struct columns columns = {};
    std::vector<uint8_t> memory;
    uint8_t *address = nullptr;
    size_t slot_bytes = 8192;
    struct failure failure = {};
};

TEST_F(UnpackTest, EachEntryHasItsBuffers) {
    ASSERT_EQ(SUPPLY_OK,
              unpack({number(2) + item(1, "ab", true) + item(2, "", false), number(0), number(1) + item(3, "c", true)}))
        << failure.text;
    EXPECT_EQ(16u, column(0).offsets_bytes);
    EXPECT_EQ(0u, column(0).data_bytes);
    EXPECT_EQ(6u, column(2).data_bytes);
    EXPECT_EQ(0u, column(3).validity_bytes);
    EXPECT_EQ(3u, column(3).data_bytes);
    EXPECT_EQ(1u, column(4).data_bytes);
    EXPECT_EQ(5, address[column(4).data_offset]);
    EXPECT_EQ(24u, column(6).data_bytes);
    const int32_t ends[] = {0, 2, 2, 3};
    EXPECT_EQ(0, memcmp(ends, address + column(0).offsets_offset, sizeof ends));
}

TEST_F(UnpackTest, OtherLengthsAreRefused) {
    const std::string good = number(2) + item(1, "ab", true) + item(2, "", false);
    for (const std::string &wrong :
         {good + "x", good.substr(0, good.size() - 1), number(0xFFFFFFFF), std::string(), std::string("xyz"),
          number(1) + std::string("\1\0\1", 3) + number(0x7FFFFFFF) + "text", number(0x7FFFFFFF) + good}) {
        EXPECT_EQ(SUPPLY_ERROR_CONTRACT, unpack({good, wrong}));
        EXPECT_NE(nullptr, strstr(failure.text, "do not belong to the columns"));
    }
    slot_bytes = supply__block_header_bytes(7) + 64;
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, unpack({good}));
}

/* A neighbour writes into the slot when this rank has already made a block of it. */
TEST_F(UnpackTest, ATableAndOffsetsThatHaveChangedAreRefused) {
    const std::vector<std::function<void(block_column &, int32_t *)>> changes = {
        [](block_column &column, int32_t *) { column.data_offset = 1u << 31; },
        [](block_column &column, int32_t *) { column.data_offset += 128; },
        [](block_column &column, int32_t *) { column.data_bytes = UINT32_MAX; },
        [](block_column &column, int32_t *) { column.data_bytes--; },
        [](block_column &column, int32_t *) { column.offsets_offset = UINT32_MAX - 3; },
        [](block_column &column, int32_t *) { column.offsets_offset += 1; },
        [](block_column &column, int32_t *) { column.offsets_bytes = 4; },
        [](block_column &column, int32_t *) { column.validity_bytes = 1u << 30; },
        [](block_column &, int32_t *offsets) { offsets[0] = -4; },
        [](block_column &, int32_t *offsets) { offsets[1] = INT32_MAX; },
        [](block_column &, int32_t *offsets) { offsets[2] = offsets[1] - 1; },
        [](block_column &, int32_t *offsets) { offsets[2]++; },
    };
    const std::string good = number(1) + item(1, "ab", true);
    for (const auto &change : changes) {
        EXPECT_EQ(SUPPLY_ERROR_CONTRACT, unpack({good, good}, change));
        EXPECT_EQ(0xA5, address[slot_bytes]);
    }
}

/* Whatever a neighbour changes meanwhile, nothing outside of the slot is read or written. */
TEST_F(UnpackTest, ASlotThatChangesMeanwhile) {
    const std::string good = number(2) + item(1, "abcdef", true) + item(2, "g", false);
    ASSERT_EQ(SUPPLY_OK, unpack({good, good}));
    const size_t bytes_of_ring = slot_bytes + 1;
    const int fd = memfd_create("test", MFD_CLOEXEC);
    ASSERT_EQ(static_cast<ssize_t>(bytes_of_ring), write(fd, address, bytes_of_ring));
    const auto map = [&] { return mmap(nullptr, bytes_of_ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); };
    address = static_cast<uint8_t *>(map());
    auto *const of_neighbour = static_cast<uint32_t *>(map());
    close(fd);
    std::atomic<bool> is_over{false};
    std::thread neighbour([&] {
        for (uint32_t i = 1; !is_over; i = i * 1664525 + 1013904223)
            __atomic_store_n(of_neighbour + (i >> 8) % 256, i, __ATOMIC_RELAXED);
    });
    for (int i = 0; i < 20000; i++) {
        size_t bytes = 1024;
        const struct slot slot = {address, slot_bytes};
        struct failure why = {};
        const supply_status_t status = exchange_children_unpack(&columns, &slot, 2, &bytes, &why);
        EXPECT_TRUE(status == SUPPLY_OK || status == SUPPLY_ERROR_CONTRACT);
    }
    is_over = true;
    neighbour.join();
    EXPECT_EQ(0xA5, address[slot_bytes]);
    munmap(address, bytes_of_ring);
    munmap(of_neighbour, bytes_of_ring);
}

TEST_F(UnpackTest, WhateverChangesNothingElseIsWritten) {
    const std::string good = number(2) + item(1, "abcdef", true) + item(2, "g", false);
    for (size_t i = 0; i < good.size(); i++)
        for (int bit = 0; bit < 8; bit++) {
            std::string changed = good;
            changed[i] = static_cast<char>(changed[i] ^ 1 << bit);
            const supply_status_t status = unpack({good, changed, good});
            EXPECT_TRUE(status == SUPPLY_OK || status == SUPPLY_ERROR_CONTRACT);
            EXPECT_EQ(0xA5, address[slot_bytes]);
        }
}

} // namespace supply_test
