// What arrives from the other ranks of an exchange. The rank under test has a real pair with valid data. The others are
// as it is: what it sends to one of them comes back, changed by the input. An input without changes is an exchange that
// ends well. If they are neighbours, what it copies into their rings comes back into its own one. If there are two
// nodes, the board of the other rank of its node has what its own one has.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "block_image.h"
#include "fuzzed_pair.h"
#include "input.h"

extern "C" {
#include "neighbours.h"
#include "exchange.h"
}

namespace supply_fuzz {
namespace {

using supply_test::BlockImage;
using supply_test::Column;

enum { TABLE_BYTES = 1024, RANKS_MAX = 4, CALLS_MAX = 300, OPERATIONS_MAX = 3000 };

/** The ring of another rank, or its board. */
class NeighbourRing {
  public:
    NeighbourRing() = default;
    NeighbourRing(const NeighbourRing &) = delete;
    NeighbourRing &operator=(const NeighbourRing &) = delete;
    ~NeighbourRing() {
        if (bytes_ == nullptr) return;
        munmap(bytes_, size_);
        close(fd_);
    }

    /** What that rank says of it, beside what this one says of its own. */
    void show(card &card) {
        struct stat memory = {};
        size_ = card.ring_bytes;
        fd_ = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(size_)) != 0 || fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
            fstat(fd_, &memory) != 0)
            abort();
        bytes_ = static_cast<uint8_t *>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
        card.device = memory.st_dev;
        card.inode = memory.st_ino;
        card.descriptor = fd_;
    }

    /** Moves what was copied there to the same places of another ring of that size. */
    void move_to(uint8_t *ring) {
        for (off_t at = lseek(fd_, 0, SEEK_DATA); at >= 0;) {
            const off_t end = lseek(fd_, at, SEEK_HOLE);
            for (off_t i = at; i < end; i++)
                if (bytes_[i] != 0) ring[i] = bytes_[i];
            fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, end - at);
            at = lseek(fd_, end, SEEK_DATA);
        }
    }

    /** Takes over all that another board has. */
    template <typename Others>
    void mirror(Others &others, int board) {
        if (bytes_ == nullptr) return;
        for (off_t at = lseek(board, 0, SEEK_DATA); at >= 0;) {
            const off_t end = lseek(board, at, SEEK_HOLE);
            const auto count = static_cast<size_t>(end - at);
            if (pread(board, bytes_ + at, count, at) != static_cast<ssize_t>(count)) abort();
            others.change(bytes_ + at, count);
            at = lseek(board, end, SEEK_DATA);
        }
    }

    /** Takes over what another ring says of its slot and of this rank, for the sender of that ring. */
    template <typename Others>
    void say(Others &others, const uint8_t *ring, size_t bytes, size_t entry, uint64_t sender) {
        const auto said = reinterpret_cast<const uint64_t *>(ring + WORDS_OFFSET);
        at_ = said[2];
        if (bytes_ == nullptr || at_ > bytes || bytes - at_ < TABLE_BYTES) return;
        memcpy(bytes_ + at_, ring + at_, TABLE_BYTES);
        reinterpret_cast<uint64_t *>(bytes_ + at_)[entry] = sender;
        memcpy(bytes_ + WORDS_OFFSET, said, 3 * sizeof *said);
        others.change(bytes_ + at_, 128);
        others.change(bytes_ + WORDS_OFFSET, 3 * sizeof *said);
    }

    /** If the sender has copied its elements there, they come back, and with them that they have. */
    void answer(uint8_t *ring, size_t entry) {
        if (bytes_ == nullptr || at_ == 0) return;
        const uint64_t arrived = reinterpret_cast<uint64_t *>(bytes_ + at_)[entry + 1];
        if (arrived == 0) return;
        memset(bytes_ + at_, 0, TABLE_BYTES);
        memset(bytes_ + WORDS_OFFSET, 0, 3 * sizeof arrived);
        move_to(ring);
        reinterpret_cast<uint64_t *>(ring + at_)[entry + 1] = arrived;
        at_ = 0;
    }

  private:
    int fd_ = -1;
    uint8_t *bytes_ = nullptr;
    size_t size_ = 0, at_ = 0; /* of the table; 0: it has said nothing */
};

/** A transport whose operations are complete at once. */
class OtherRanks {
  public:
    OtherRanks(Input &input, uint8_t shape, bool are_neighbours, bool has_nodes, size_t columns_of_any_length)
        : input_(input), ranks_(has_nodes ? RANKS_MAX : 1 + shape % RANKS_MAX), rank_(shape / RANKS_MAX % ranks_),
          variables_(columns_of_any_length), peers_(has_nodes ? 2 : ranks_),
          are_neighbours_(are_neighbours || has_nodes) {}
    OtherRanks(const OtherRanks &) = delete;
    OtherRanks &operator=(const OtherRanks &) = delete;
    ~OtherRanks() {
        if (board_ >= 0) close(board_);
    }

    transport interface() { return interface_of(all_); }

    /** What this rank copies with the value 0 does not come back from neighbours. */
    bool have_changed() const { return changed_ || (are_neighbours_ && ranks_ > 1); }

    /**
     * The neighbours say of their slots what this rank says of its own one; and they have copied, one of them more than
     * it should.
     */
    void copy() {
        size_t bytes;
        auto *const ring =
            handle ? static_cast<uint8_t *>(const_cast<void *>(supply_mapping(handle, &bytes))) : nullptr;
        if (ring == nullptr || !are_neighbours_) return;
        /* As in neighbours.c: numbers in front of the entries, and numbers of an entry. */
        const size_t begin = 2 + variables_, numbers = 3 + variables_;
        const uint64_t round = reinterpret_cast<const uint64_t *>(ring + WORDS_OFFSET)[0];
        for (size_t rank = 0; rank < ranks_; rank++) {
            if (rank == rank_ || !is_here(rank)) continue;
            const size_t first = rank_ / peers_ * peers_, entry = begin + (rank - first - (rank > rank_)) * numbers;
            boards_[rank].mirror(*this, board_);
            if (round != round_)
                rings_[rank].say(*this, ring, bytes, entry, rank_);
            else
                rings_[rank].answer(ring, entry);
        }
        if (round == round_) change(ring + RING_OFFSET, bytes - RING_OFFSET);
        round_ = round;
    }

    /** Set when it is open: what arrives in its ring must stay there. */
    supply_t *handle = nullptr;

  private:
    friend class NeighbourRing;

    /** All ranks, or those of a rail. */
    struct Part {
        OtherRanks &others;
        size_t ranks, rank;
    };
    static const Part &of(void *context) { return *static_cast<Part *>(context); }

    static transport interface_of(Part &part) {
        return {static_cast<int>(part.rank),
                static_cast<int>(part.ranks),
                false,
                &part,
                allgather,
                alltoall,
                alltoallv,
                [](void *, int, failure *) { return SUPPLY_OK; },
                split,
                nullptr,
                [](void *, bool) {}};
    }

    static supply_status_t split(void *context, const int *, int ranks, int rank, transport *part, failure *) {
        OtherRanks &others = of(context).others;
        others.rail_.ranks = static_cast<size_t>(ranks);
        others.rail_.rank = static_cast<size_t>(rank);
        *part = interface_of(others.rail_);
        return SUPPLY_OK;
    }

    /** Whether it is a rank of the node of the one under test. */
    bool is_here(size_t rank) const { return rank / peers_ == rank_ / peers_; }

    /** What another rank says of its ring or its board. */
    void show(size_t rank, card &shown) {
        if (!is_here(rank))
            shown.machine++;
        else if (!has_rings_)
            rings_[rank].show(shown);
        else
            boards_[rank].show(shown);
    }

    /** Changes what has arrived: u8 count, and for each change u16 offset, u8 kind and count, bytes. */
    void change(uint8_t *bytes, size_t size) {
        enum { COUNT_MASK = 15, SET = 16, FILL = 32 };
        const unsigned changes = input_.number<uint8_t>() % 8;
        for (unsigned i = 0; i < changes && size > 0; i++) {
            changed_ = true;
            const size_t at = input_.number<uint16_t>() % size;
            const uint8_t kind = input_.number<uint8_t>();
            uint8_t with[COUNT_MASK] = {};
            const size_t count = std::min<size_t>(kind & COUNT_MASK, size - at);
            input_.copy(with, count);
            if (kind & FILL)
                memset(bytes + at, with[0], size - at);
            else
                for (size_t k = 0; k < count; k++)
                    bytes[at + k] = kind & SET ? with[k] : static_cast<uint8_t>(bytes[at + k] ^ with[k]);
        }
    }

    /** An input that never ends the exchange is not interesting. */
    supply_status_t count(int *operation, failure *failure) {
        *operation = 0;
        if (++operations_ < OPERATIONS_MAX) return SUPPLY_OK;
        return supply__fail(failure, SUPPLY_ERROR_SYSTEM, "too many operations");
    }

    static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                     failure *failure) {
        const Part &part = of(context);
        OtherRanks &others = part.others;
        const bool are_cards = bytes == sizeof(card) && others.are_neighbours_ && !others.has_boards_;
        const bool are_links = bytes == sizeof(uint64_t) && !others.has_boards_;
        if (are_cards && others.has_rings_) others.board_ = dup(static_cast<const card *>(send)->descriptor);
        for (size_t rank = 0; rank < part.ranks; rank++) {
            uint8_t *to = static_cast<uint8_t *>(receive) + rank * bytes;
            memmove(to, send, bytes);
            if (are_cards && rank != part.rank) others.show(rank, *reinterpret_cast<card *>(to));
            /* Of a rank that has no neighbours, to itself. */
            const size_t first = rank / others.peers_ * others.peers_, count = others.peers_;
            if (are_links)
                *reinterpret_cast<uint64_t *>(to) = others.are_neighbours_ ? ((1u << count) - 1) << first : 1u << rank;
            if (rank != part.rank) others.change(to, bytes);
        }
        others.has_boards_ |= are_cards && others.has_rings_;
        others.has_rings_ |= are_cards;
        return others.count(operation, failure);
    }

    static supply_status_t alltoall(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                    failure *failure) {
        const Part &part = of(context);
        OtherRanks &others = part.others;
        memcpy(receive, send, part.ranks * bytes);
        for (size_t rank = 0; rank < part.ranks; rank++)
            if (rank != part.rank) others.change(static_cast<uint8_t *>(receive) + rank * bytes, bytes);
        return others.count(operation, failure);
    }

    /** Parts in a ring must lie in one of its slots; the sanitizer checks other memory. */
    void check_place(const uint8_t *place, size_t bytes) const {
        size_t mapped_bytes;
        const auto *mapped = handle ? static_cast<const uint8_t *>(supply_mapping(handle, &mapped_bytes)) : nullptr;
        if (mapped == nullptr || place < mapped || place >= mapped + mapped_bytes) return;
        if (bytes > static_cast<size_t>(mapped + mapped_bytes - place)) found("a part that does not fit into the ring");
    }

    static supply_status_t alltoallv(void *context, const void *send, const ::part *send_parts, void *receive,
                                     const ::part *receive_parts, int *operation, failure *failure) {
        const Part &part = of(context);
        OtherRanks &others = part.others;
        for (size_t rank = 0; rank < part.ranks; rank++) {
            const ::part &sent = send_parts[rank], &received = receive_parts[rank];
            if (sent.bytes == 0 && received.bytes == 0) continue;
            const std::string bytes(static_cast<const char *>(send) + sent.offset, sent.bytes);
            uint8_t *to = static_cast<uint8_t *>(receive) + received.offset;
            others.check_place(to, received.bytes);
            memset(to, 0, received.bytes);
            memcpy(to, bytes.data(), std::min(bytes.size(), received.bytes));
            others.change(to, received.bytes);
        }
        return others.count(operation, failure);
    }

    Input &input_;
    const size_t ranks_, rank_, variables_, peers_; /* the last ones: columns of any length; ranks of a node */
    const bool are_neighbours_;
    Part all_ = {*this, ranks_, rank_}, rail_ = all_;
    std::array<NeighbourRing, RANKS_MAX> rings_, boards_;
    bool has_rings_ = false, has_boards_ = false; /* has shown them */
    int board_ = -1;                              /* of the rank under test */
    unsigned operations_ = 0;
    uint64_t round_ = 0;
    bool changed_ = false;
};

/** A list of texts and of lists of numbers. */
void add_children(std::vector<Column> &columns, uint32_t first, uint32_t count) {
    std::vector<int32_t> ends = {0}, inner_ends = {0}, numbers;
    std::vector<std::string> texts;
    for (uint32_t i = first; i < first + count; i++) {
        for (uint32_t k = 0; k < i % 3; k++) {
            texts.emplace_back(k, 'x');
            numbers.push_back(static_cast<int32_t>(i));
            inner_ends.push_back(static_cast<int32_t>(numbers.size()));
        }
        ends.push_back(static_cast<int32_t>(texts.size()));
    }
    columns.push_back(Column::parent("list", "+l", 1, ends));
    columns.push_back(Column::parent("item", "+s", 2));
    columns.push_back(Column::variable("text", "u", texts));
    columns.back().validity = std::string((texts.size() + 7) / 8, '\xff');
    columns.push_back(Column::parent("numbers", "+l", 1, inner_ends));
    columns.push_back(Column::int32("item", numbers));
}

std::vector<Column> columns_of(uint32_t first, uint32_t count, bool has_children) {
    std::string ids;
    std::vector<bool> flags;
    std::vector<std::string> texts;
    for (uint32_t i = first; i < first + count; i++) {
        const double id = i * 7 % 11;
        ids.append(reinterpret_cast<const char *>(&id), sizeof id);
        flags.push_back(i % 3 == 0);
        texts.emplace_back(i % 5, static_cast<char>('a' + i % 26));
    }
    std::vector<Column> columns = {Column::fixed("id", "g", ids), Column::bits("flag", flags),
                                   Column::variable("text", "z", texts)};
    columns[2].validity = std::string((count + 7) / 8, '\xf7');
    for (uint32_t i = 0; i < count; i++) columns[2].null_count += i % 8 == 3;
    if (has_children) add_children(columns, first, count);
    return columns;
}

/** The task of the rank: publishes what its ring has space for. */
class ValidTask {
  public:
    ValidTask(FuzzedPair &pair, bool has_data, bool has_children)
        : pair_(pair), has_data_(has_data), has_children_(has_children) {
        if (!has_data) return;
        const std::vector<schema_entry> schema = supply_test::schema_of(columns_of(0, 9, has_children));
        memcpy(pair.mapping() + SCHEMA_OFFSET, schema.data(), schema.size() * sizeof schema[0]);
        __atomic_store_n(&pair.header().schema_columns, static_cast<uint32_t>(schema.size()), __ATOMIC_RELEASE);
    }

    void publish() {
        static constexpr uint32_t rows[] = {9, 20, 0, 5, 0}; /* 0: the end of an epoch */
        constexpr uint64_t ends = sizeof rows / sizeof *rows;
        const uint64_t released = __atomic_load_n(&pair_.header().released, __ATOMIC_ACQUIRE);
        while (next_ <= ends && sequence_ < released + FuzzedPair::block_count) {
            if (next_ == ends)
                publish(NOTIFICATION_END_OF_DATA, {}, 0);
            else if (rows[next_] == 0)
                publish(NOTIFICATION_END_OF_EPOCH, {}, 0);
            else if (has_data_)
                publish(NOTIFICATION_BLOCK, columns_of(element_, rows[next_], has_children_), rows[next_]);
            next_++;
        }
    }

  private:
    void publish(uint32_t kind, const std::vector<Column> &columns, uint32_t rows) {
        const BlockImage image(columns, rows);
        notification notification = {};
        notification.generation = pair_.header().generation;
        notification.kind = kind;
        notification.sequence = sequence_;
        notification.epoch = epoch_;
        notification.offset = static_cast<uint64_t>(pair_.slot(sequence_) - pair_.mapping());
        notification.size = kind == NOTIFICATION_BLOCK ? image.bytes.size() : sizeof(block_header);
        notification.first_element = element_;
        notification.element_count = rows;
        memcpy(pair_.slot(sequence_), image.bytes.data(), image.bytes.size());
        memcpy(pair_.slot(sequence_), &notification, sizeof notification);
        element_ = kind == NOTIFICATION_BLOCK ? element_ + rows : 0;
        epoch_ += kind == NOTIFICATION_END_OF_EPOCH;
        __atomic_store_n(&pair_.header().published, ++sequence_, __ATOMIC_RELEASE);
        pair_.send(&notification, sizeof notification);
    }

    FuzzedPair &pair_;
    const bool has_data_, has_children_;
    uint64_t next_ = 0, sequence_ = 0;
    uint32_t epoch_ = 0, element_ = 0;
};

/** u8 policy, key, whether the rank has data, with children, neighbours, and two nodes; u8 number of ranks and rank;
 * then the changes. */
void run(Input input) {
    enum { POLICIES = 4, KEY_IS_TEXT = 4, NO_DATA = 8, SPILLS = 16, CHILDREN = 32, NEIGHBOURS = 64, NODES = 128 };
    FuzzedPair pair(true);
    const uint8_t how = input.number<uint8_t>();
    supply_exchange_options_t options;
    supply_exchange_options_init(&options);
    options.policy = static_cast<supply_exchange_policy_t>(SUPPLY_EXCHANGE_ALL + how % POLICIES);
    options.window_bytes = 256;
    if (options.policy == SUPPLY_EXCHANGE_HASH || options.policy == SUPPLY_EXCHANGE_RANGE) {
        options.column = how & KEY_IS_TEXT ? "text" : "id";
        options.nulls_together = true;
    }
    if (options.policy == SUPPLY_EXCHANGE_RANGE && how & SPILLS) options.memory_bytes = 1;
    OtherRanks others(input, input.number<uint8_t>(), how & NEIGHBOURS, how & NODES, how & CHILDREN ? 2 : 1);
    ValidTask task(pair, !(how & NO_DATA), how & CHILDREN);
    task.publish();
    const transport transport = others.interface();
    if (supply__exchange_over(&pair.handle(), &transport, &options) != SUPPLY_OK) return;
    others.handle = pair.handle();
    for (int calls = 0; calls < CALLS_MAX && pair.receive(); calls++) {
        pair.release_oldest();
        task.publish();
        others.copy();
    }
    others.handle = nullptr;
    supply_block_t block;
    if (!others.have_changed() && supply_try_next(pair.handle(), &block) != SUPPLY_END_OF_DATA)
        found("an exchange without changes does not end well");
}

} // namespace
} // namespace supply_fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    supply_fuzz::run(supply_fuzz::Input(data, size));
    return 0;
}
