/**
 * The memory bandwidth of one core: reads a large array, or copies it to another one.
 *
 * Lines: `read|copy`. Arguments: the bytes of the array.
 */
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "messages.h"
#include "rounds.h"

static char *touched(size_t bytes) {
    char *memory = malloc(bytes);
    if (memory == NULL) die("no memory for an array of %zu bytes", bytes);
    memset(memory, 1, bytes);
    return memory;
}

int main(int argc, char **argv) {
    messages_from("bench-bandwidth");
    if (argc != 2) die("usage: bench-bandwidth BYTES");
    const size_t bytes = strtoul(argv[1], NULL, 10);
    char *const from = touched(bytes), *const to = touched(bytes);
    char line[16];
    while (next_round(line, sizeof line)) {
        uint64_t sum = 0;
        const struct round round = round_begin();
        if (strcmp(line, "read") == 0)
            sum = sum_of_words(from, bytes);
        else if (strcmp(line, "copy") == 0)
            memcpy(to, from, bytes);
        else
            die("'%s' is not a round: write read or copy", line);
        __asm__ volatile("" : : "r"(to) : "memory"); /* else the compiler drops a copy that nobody reads */
        answer_round(round_end(round), 1, bytes, sum);
    }
    free(from);
    free(to);
    return 0;
}
