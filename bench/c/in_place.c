/**
 * The baseline of later epochs: reads the data of all blocks of a resident file in place, once in each round, without
 * being the rank of the pair. There is no such file before the end of the first epoch.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "layout.h"

/* NULL: there is no such file any more. */
static const uint8_t *map(const char *path) {
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) return NULL;
    if (file < 0 || fstat(file, &status) != 0) die("%s cannot be opened: %m", path);
    void *address = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) die("%s cannot be mapped: %m", path);
    close(file);
    return address;
}

/* The file whose path matches, because the name of a resident file has a hash. NULL: there is none yet. */
static const uint8_t *map_match(const char *pattern) {
    glob_t found;
    const int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOMATCH) return NULL;
    if (code != 0) die("%s: glob failed with code %d", pattern, code);
    if (found.gl_pathc != 1) die("%s: %zu files match", pattern, (size_t)found.gl_pathc);
    const uint8_t *file = map(found.gl_pathv[0]);
    globfree(&found);
    return file;
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
    const uint32_t column = header->block_count > 0 ? data_column(file) : 0;
    uint64_t elements = 0, bytes = 0, sum = 0;
    struct round round = round_begin();
    for (uint64_t number = 0; number < header->block_count; number++) {
        const uint8_t *address = file + RING_OFFSET + number * header->block_bytes;
        const struct block_header *block = (const void *)address;
        if (block->notification.kind != NOTIFICATION_BLOCK) continue;
        const struct block_column *data = (const struct block_column *)(address + sizeof *block) + column;
        sum += sum_of_words(address + data->data_offset, data->data_bytes);
        elements += block->notification.element_count;
        bytes += data->data_bytes;
    }
    round_end(&round);
    round_answer(&round, elements, bytes, sum);
}

int main(int argc, char **argv) {
    messages_from("bench-in-place");
    if (argc != 2) die("usage: bench-in-place PATTERN");
    const uint8_t *file = NULL;
    while (next_round()) {
        if (file == NULL) file = map_match(argv[1]);
        if (file != NULL)
            measure(file);
        else
            round_answer(&(struct round){0}, 0, 0, 0);
    }
    return 0;
}
