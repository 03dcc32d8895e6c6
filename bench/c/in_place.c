/**
 * The baseline of resident blocks: reads the data of all resident blocks of a mapped file in place, once in each round,
 * without being the rank of the pair. There are none before the end of the first epoch.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "checksum.h"
#include "layout.h"
#include "messages.h"
#include "rounds.h"

static const uint8_t *map(const char *path) {
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) die("%s cannot be opened: %m", path);
    void *address = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) die("%s cannot be mapped: %m", path);
    return address;
}

static uint32_t data_column(const uint8_t *file) {
    const struct mapped_file_header *header = (const void *)file;
    const struct schema_entry *entries = (const void *)(file + SCHEMA_OFFSET);
    for (uint32_t i = 0; i < header->schema_columns; i++)
        if (strcmp(entries[i].name, "data") == 0) return i;
    die("the blocks have no column 'data'");
}

/* The rounds of this baseline run while no task writes. */
static void measure(const uint8_t *file) {
    const struct mapped_file_header *header = (const void *)file;
    const uint64_t end = header->resident_first + header->resident_count;
    const uint32_t column = header->resident_count > 0 ? data_column(file) : 0;
    uint64_t elements = 0, bytes = 0, sum = 0;
    const struct round round = round_begin();
    for (uint64_t number = header->resident_first; number < end; number++) {
        const uint8_t *address = file + RING_OFFSET + number % header->block_count * header->block_bytes;
        const struct block_header *block = (const void *)address;
        if (block->notification.kind != NOTIFICATION_BLOCK) continue;
        const struct block_column *data = (const struct block_column *)(address + sizeof *block) + column;
        sum += sum_of_words(address + data->data_offset, data->data_bytes);
        elements += block->notification.element_count;
        bytes += data->data_bytes;
    }
    answer_round(round_end(round), elements, bytes, sum);
}

int main(int argc, char **argv) {
    messages_from("bench-in-place");
    if (argc != 2) die("usage: bench-in-place MAPPED_FILE");
    const uint8_t *file = map(argv[1]);
    char line[16];
    while (next_round(line, sizeof line)) measure(file);
    return 0;
}
