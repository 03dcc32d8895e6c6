/**
 * What an exchange of all elements costs between two pairs of plain processes: each pair has one process that copies
 * elements into its ring, and one that reads. Without an exchange the reader sums every word in its ring. With one it
 * copies the elements of a window, in random order, to receive buffers, of its own and of the other reader in turn, and
 * sums what it has received: each byte is copied once more.
 *
 * Nothing of the product takes part, and nobody sleeps during a round: all poll. Arguments: the bytes of the data of
 * both pairs, of an element, of a block, of a ring and of a window. A line "plain" or "exchanged" asks for a round.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "checksum.h"
#include "messages.h"
#include "polling.h"
#include "rounds.h"

enum { PAIRS = 2, BUFFERS = 2, CACHE_LINE = 64 };

/** What all processes see. The counts are since the start. */
struct pair {
    _Alignas(CACHE_LINE) atomic_ulong published; /* blocks */
    _Alignas(CACHE_LINE) atomic_ulong released;
    _Alignas(CACHE_LINE) atomic_ulong exchanged; /* windows */
    _Alignas(CACHE_LINE) atomic_ulong done;      /* rounds, of the reader */
    uint64_t sum;                                /* of the round */
};

struct shared {
    struct pair pairs[PAIRS];
    _Alignas(CACHE_LINE) atomic_ulong begun; /* rounds */
    atomic_bool is_exchanged;
};

struct sizes {
    size_t elements, blocks; /* of a pair; a multiple of those of a window */
    size_t element, block_elements, window_elements, slots;
};

static struct shared *shared;
static struct sizes sizes;
static char *data[PAIRS], *rings[PAIRS], *received[PAIRS];

static char *slot(const char *ring, size_t turn) {
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): parse() has checked it
    return (char *)ring + turn % sizes.slots * sizes.block_elements * sizes.element;
}

_Noreturn static void produce(int number) {
    struct pair *pair = &shared->pairs[number];
    size_t turn = 0;
    for (size_t round = 1;; round++) {
        await(&shared->begun, round);
        const char *from = data[number];
        for (size_t i = 0; i < sizes.blocks; i++, turn++) {
            if (turn >= sizes.slots) await(&pair->released, turn - sizes.slots + 1);
            char *to = slot(rings[number], turn);
            for (size_t k = 0; k < sizes.block_elements; k++, from += sizes.element, to += sizes.element)
                memcpy(to, from, sizes.element);
            atomic_store_explicit(&pair->published, turn + 1, memory_order_release);
        }
    }
}

static void release(struct pair *pair, size_t turn) {
    atomic_store_explicit(&pair->released, turn, memory_order_release);
}

static void sum_in_place(int number, size_t turn) {
    struct pair *pair = &shared->pairs[number];
    for (size_t i = 0; i < sizes.blocks; i++, turn++) {
        await(&pair->published, turn + 1);
        pair->sum += sum_of_words(slot(rings[number], turn), sizes.block_elements * sizes.element);
        release(pair, turn + 1);
    }
}

/** Copies a window of this ring to the buffers of all readers. */
static void deal(int number, size_t turn, size_t window, const uint32_t *order) {
    const size_t share = sizes.window_elements / PAIRS;
    const size_t begin = window % BUFFERS * sizes.window_elements + (size_t)number * share;
    for (size_t i = 0; i < sizes.window_elements; i++) {
        const size_t block = order[i] / sizes.block_elements, row = order[i] % sizes.block_elements;
        char *to = received[i % PAIRS] + (begin + i / PAIRS) * sizes.element;
        memcpy(to, slot(rings[number], turn + block) + row * sizes.element, sizes.element);
    }
}

static void sum_exchanged(int number, size_t turn, size_t window, const uint32_t *order) {
    struct pair *pair = &shared->pairs[number];
    const size_t window_blocks = sizes.window_elements / sizes.block_elements;
    for (size_t i = 0; i < sizes.elements / sizes.window_elements; i++, window++) {
        await(&pair->published, turn + window_blocks);
        deal(number, turn, window, order);
        turn += window_blocks;
        release(pair, turn);
        atomic_store_explicit(&pair->exchanged, window + 1, memory_order_release);
        for (int other = 0; other < PAIRS; other++) await(&shared->pairs[other].exchanged, window + 1);
        pair->sum += sum_of_words(received[number] + window % BUFFERS * sizes.window_elements * sizes.element,
                                  sizes.window_elements * sizes.element);
    }
}

static uint32_t *random_order(void) {
    uint32_t *order = calloc(sizes.window_elements, sizeof *order);
    if (order == NULL) die("no memory for an order");
    for (size_t i = 0; i < sizes.window_elements; i++) {
        const size_t other = (size_t)random() % (i + 1);
        order[i] = order[other];
        order[other] = (uint32_t)i;
    }
    return order;
}

_Noreturn static void consume(int number) {
    const uint32_t *order = random_order();
    size_t windows = 0;
    for (size_t round = 1;; round++) {
        await(&shared->begun, round);
        const size_t turn = (round - 1) * sizes.blocks;
        shared->pairs[number].sum = 0;
        if (shared->is_exchanged) {
            sum_exchanged(number, turn, windows, order);
            windows += sizes.elements / sizes.window_elements;
        } else {
            sum_in_place(number, turn);
        }
        atomic_store_explicit(&shared->pairs[number].done, round, memory_order_release);
    }
}

static void start(void (*work)(int), int number) {
    const pid_t process = fork();
    if (process < 0) die("no process: %m");
    if (process > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(number);
}

/** The others poll, and would do so for ever. */
static void fail_without_child(int signal_number) {
    (void)signal_number;
    static const char message[] = "bench-exchange-bound: error: one of its processes has ended\n";
    _exit(write(STDERR_FILENO, message, sizeof message - 1) < 0 ? 2 : 1);
}

static uint64_t fill(char *to, uint64_t seed) {
    const size_t words = sizes.elements * sizes.element / sizeof(uint64_t);
    for (size_t i = 0; i < words; i++) ((uint64_t *)(void *)to)[i] = (i + seed) * UINT64_C(0x9e3779b97f4a7c15);
    return sum_of_words(to, words * sizeof(uint64_t));
}

static void parse(char **argv) {
    const size_t bytes = strtoul(argv[1], NULL, 10), block = strtoul(argv[3], NULL, 10);
    const size_t ring = strtoul(argv[4], NULL, 10), window = strtoul(argv[5], NULL, 10);
    sizes.element = strtoul(argv[2], NULL, 10);
    if (sizes.element == 0 || sizes.element % sizeof(uint64_t) != 0 || PAIRS * sizes.element > block ||
        window % block != 0)
        die("an element has %zu bytes: it must be a multiple of 8, two must fit a block, and a window must have whole "
            "blocks",
            sizes.element);
    sizes.block_elements = block / sizes.element / PAIRS * PAIRS;
    sizes.window_elements = window / block * sizes.block_elements;
    sizes.elements = bytes / PAIRS / sizes.element / sizes.window_elements * sizes.window_elements;
    sizes.blocks = sizes.elements / sizes.block_elements;
    sizes.slots = ring / block;
    if (sizes.elements == 0 || ring < window)
        die("data of %zu bytes, or the ring, has no window of %zu", bytes, window);
}

int main(int argc, char **argv) {
    messages_from("bench-exchange-bound");
    if (argc != 6) die("usage: bench-exchange-bound BYTES ELEMENT BLOCK RING WINDOW");
    parse(argv);
    shared = mapped(sizeof *shared);
    uint64_t expected = 0;
    for (int i = 0; i < PAIRS; i++) {
        data[i] = mapped(sizes.elements * sizes.element);
        rings[i] = mapped(sizes.slots * sizes.block_elements * sizes.element);
        received[i] = mapped(BUFFERS * sizes.window_elements * sizes.element);
        expected += fill(data[i], (uint64_t)i << 32);
    }
    signal(SIGCHLD, fail_without_child);
    for (int i = 0; i < PAIRS; i++) {
        start(produce, i);
        start(consume, i);
    }
    char line[16];
    for (size_t number = 1; next_round(line, sizeof line); number++) {
        shared->is_exchanged = strcmp(line, "exchanged") == 0;
        const struct round round = round_begin();
        atomic_store_explicit(&shared->begun, number, memory_order_release);
        uint64_t sum = 0;
        for (int i = 0; i < PAIRS; i++) {
            await(&shared->pairs[i].done, number);
            sum += shared->pairs[i].sum;
        }
        const struct round_times times = round_end(round);
        if (sum != expected) die("the readers have read another sum than the data has");
        answer_round(times, PAIRS * sizes.elements, PAIRS * sizes.elements * sizes.element, sum);
    }
    return 0;
}
