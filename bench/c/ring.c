/**
 * What a ring costs between two plain processes: one copies elements into its slots, the other sums every word in
 * place.
 *
 * Nothing of the product takes part, and nobody sleeps during a round: both sides poll. Arguments: the bytes of the
 * data, of an element, of a block and of the ring. An empty line asks for a round.
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

/** What both processes see. The counts are of blocks, since the start. */
struct shared {
    _Alignas(CACHE_LINE) atomic_ulong published;
    _Alignas(CACHE_LINE) atomic_ulong released;
    uint64_t sum; /* of all released blocks */
};

struct ring {
    struct shared *shared;
    char *slots;
    size_t slot_bytes, slot_count;
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

/** Reads a round whenever a byte comes through the pipe. */
_Noreturn static void consume(const struct ring *ring, const struct source *source, int rounds) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    size_t turn = 0;
    for (char begin; read(rounds, &begin, 1) == 1;)
        for (size_t i = 0; i < blocks_of(source); i++, turn++) {
            await(&ring->shared->published, turn + 1);
            ring->shared->sum += sum_of_words(slot_of(ring, turn), block_bytes(source, i));
            atomic_store_explicit(&ring->shared->released, turn + 1, memory_order_release);
        }
    exit(0);
}

/** Returns the number of blocks published until now. */
static size_t produce(const struct ring *ring, const struct source *source, size_t turn) {
    const char *from = source->data;
    for (size_t i = 0; i < blocks_of(source); i++, turn++) {
        if (turn >= ring->slot_count) await(&ring->shared->released, turn - ring->slot_count + 1);
        char *const to = slot_of(ring, turn);
        const size_t bytes = block_bytes(source, i);
        for (size_t at = 0; at < bytes; at += source->element_bytes) memcpy(to + at, from + at, source->element_bytes);
        from += bytes;
        atomic_store_explicit(&ring->shared->published, turn + 1, memory_order_release);
    }
    await(&ring->shared->released, turn);
    return turn;
}

static void measure(const struct ring *ring, const struct source *source, int rounds) {
    const size_t bytes = source->elements * source->element_bytes;
    const uint64_t expected = sum_of_words(source->data, bytes);
    size_t turn = 0;
    while (next_round()) {
        ring->shared->sum = 0;
        struct round round = round_begin();
        if (write(rounds, "", 1) != 1) die("the consumer cannot be asked: %m");
        turn = produce(ring, source, turn);
        round_end(&round);
        if (ring->shared->sum != expected) die("the consumer has read another sum than the source has");
        round_answer(&round, source->elements, bytes, ring->shared->sum);
    }
}

/** The producer polls, and would do so for ever. */
static void fail_without_consumer(int signal_number) {
    (void)signal_number;
    static const char message[] = "bench-ring: error: the process that reads has ended\n";
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
    if (argc != 5) die("usage: bench-ring BYTES ELEMENT BLOCK RING");
    const size_t block = strtoul(argv[3], NULL, 10), bytes = strtoul(argv[4], NULL, 10);
    const size_t slots = block == 0 ? 0 : bytes / block;
    if (slots == 0) die("a ring of %zu bytes has no block of %zu", bytes, block);
    const struct source source = made_source(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10), block);
    const struct ring ring = {mapped(sizeof *ring.shared), mapped(slots * block), block, slots};
    int rounds[2];
    if (pipe(rounds) != 0) die("no pipe: %m");
    signal(SIGCHLD, fail_without_consumer);
    const pid_t consumer = fork();
    if (consumer < 0) die("no consumer: %m");
    if (consumer == 0) {
        close(rounds[1]);
        consume(&ring, &source, rounds[0]);
    }
    close(rounds[0]);
    measure(&ring, &source, rounds[1]);
    return 0;
}
