/**
 * What a ring costs between plain processes: one copies elements into its slots, each of the others sums every word in
 * place. Nothing of the product takes part, and nobody sleeps during a round: all sides poll, and that is no part of
 * their CPU times. Arguments: the bytes of the data, of an element, of a block and of the ring, and the number of
 * readers, or else 1. An empty line asks for a round.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench.h"

enum { CACHE_LINE = 64, POLLS = 1000 };

/** What all processes see. The counts are of blocks, since the start. */
struct shared {
    _Alignas(CACHE_LINE) atomic_ulong published;
    struct reader {
        _Alignas(CACHE_LINE) atomic_ulong released;
        uint64_t sum; /* of all released blocks */
        int64_t cpu_nanos;
        int rounds[2]; /* a pipe: a byte begins one */
    } readers[];
};

struct ring {
    struct shared *shared;
    char *slots;
    size_t slot_bytes, slot_count, readers;
};

struct source {
    char *data;
    size_t element_bytes, elements, elements_in_block;
};

/** Memory that the forked process sees, too, with all of its pages. */
static void *mapped(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) die("no memory for %zu bytes: %m", bytes);
    return memory;
}

/** Polls until the count has that value, or more. After some polls it lets others run. */
static void await(const atomic_ulong *count, size_t value) {
    for (unsigned polls = 0; atomic_load_explicit(count, memory_order_acquire) < value; polls++)
        if (polls >= POLLS) sched_yield();
}

static size_t blocks_of(const struct source *source) {
    return (source->elements + source->elements_in_block - 1) / source->elements_in_block;
}

/** The bytes of block `number` of a round. */
static size_t block_bytes(const struct source *source, size_t number) {
    const size_t left = source->elements - number * source->elements_in_block;
    return source->element_bytes * (left < source->elements_in_block ? left : source->elements_in_block);
}

static char *slot_of(const struct ring *ring, size_t turn) {
    return ring->slots + turn % ring->slot_count * ring->slot_bytes;
}

/** Until all readers have released that number of blocks. */
static void await_readers(const struct ring *ring, size_t blocks) {
    for (size_t i = 0; i < ring->readers; i++) await(&ring->shared->readers[i].released, blocks);
}

/** Reads a round whenever a byte comes through the pipe. */
_Noreturn static void consume(const struct ring *ring, const struct source *source, struct reader *reader) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    size_t turn = 0;
    for (char begin; read(reader->rounds[0], &begin, 1) == 1;)
        for (size_t i = 0; i < blocks_of(source); i++, turn++) {
            await(&ring->shared->published, turn + 1);
            reader->cpu_nanos -= cpu_clock();
            reader->sum += sum_of_words(slot_of(ring, turn), block_bytes(source, i));
            reader->cpu_nanos += cpu_clock();
            atomic_store_explicit(&reader->released, turn + 1, memory_order_release);
        }
    exit(0);
}

/** Returns the number of blocks published until now. */
static size_t produce(const struct ring *ring, const struct source *source, size_t turn, struct round *round) {
    const char *from = source->data;
    for (size_t i = 0; i < blocks_of(source); i++, turn++) {
        if (turn >= ring->slot_count) await_readers(ring, turn - ring->slot_count + 1);
        round->cpu_nanos -= cpu_clock();
        char *const to = slot_of(ring, turn);
        const size_t bytes = block_bytes(source, i);
        for (size_t at = 0; at < bytes; at += source->element_bytes) memcpy(to + at, from + at, source->element_bytes);
        from += bytes;
        round->cpu_nanos += cpu_clock();
        atomic_store_explicit(&ring->shared->published, turn + 1, memory_order_release);
    }
    await_readers(ring, turn);
    return turn;
}

static void measure(const struct ring *ring, const struct source *source) {
    const size_t bytes = source->elements * source->element_bytes;
    const uint64_t expected = sum_of_words(source->data, bytes);
    struct reader *const end = ring->shared->readers + ring->readers;
    size_t turn = 0;
    while (next_round()) {
        struct round round = {.start = clock_nanos()};
        for (struct reader *reader = ring->shared->readers; reader < end; reader++) {
            reader->sum = 0, reader->cpu_nanos = 0;
            if (write(reader->rounds[1], "", 1) != 1) die("a reader cannot be asked: %m");
        }
        turn = produce(ring, source, turn, &round);
        round.nanos = clock_nanos() - round.start;
        for (struct reader *reader = ring->shared->readers; reader < end; reader++) {
            if (reader->sum != expected) die("a reader has read another sum than the source has");
            round.readers_nanos += reader->cpu_nanos;
        }
        round_answer(&round, source->elements, bytes, expected);
    }
}

/** The producer polls, and would do so for ever. */
static void fail_without_reader(int signal_number) {
    (void)signal_number;
    static const char message[] = "bench-ring: error: a process that reads has ended\n";
    _exit(write(STDERR_FILENO, message, sizeof message - 1) < 0 ? 2 : 1);
}

static struct source made_source(size_t bytes, size_t element_bytes, size_t block) {
    if (element_bytes == 0 || element_bytes % sizeof(uint64_t) != 0 || element_bytes > block || bytes < element_bytes)
        die("an element has %zu bytes: it must be a multiple of 8, and fit a block of %zu", element_bytes, block);
    struct source source = {
        .element_bytes = element_bytes, .elements = bytes / element_bytes, .elements_in_block = block / element_bytes};
    source.data = mapped(source.elements * element_bytes);
    uint64_t *const words = (uint64_t *)source.data;
    for (size_t i = 0; i < source.elements * element_bytes / sizeof *words; i++)
        words[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    return source;
}

int main(int argc, char **argv) {
    messages_from("bench-ring");
    if (argc != 5 && argc != 6) die("usage: bench-ring BYTES ELEMENT BLOCK RING [READERS]");
    const size_t block = strtoul(argv[3], NULL, 10), bytes = strtoul(argv[4], NULL, 10);
    const size_t slots = block == 0 ? 0 : bytes / block, readers = argc == 6 ? strtoul(argv[5], NULL, 10) : 1;
    if (slots == 0) die("a ring of %zu bytes has no block of %zu", bytes, block);
    const struct source source = made_source(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10), block);
    struct shared *const shared = mapped(sizeof *shared + readers * sizeof shared->readers[0]);
    const struct ring ring = {shared, mapped(slots * block), block, slots, readers};
    signal(SIGCHLD, fail_without_reader);
    for (struct reader *reader = shared->readers; reader < shared->readers + readers; reader++) {
        if (pipe(reader->rounds) != 0) die("no pipe: %m");
        const pid_t process = fork();
        if (process < 0) die("no reader: %m");
        if (process == 0) consume(&ring, &source, reader);
    }
    measure(&ring, &source);
    return 0;
}
