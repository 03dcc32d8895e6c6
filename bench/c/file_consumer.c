/** The consumer of the file-per-partition alternative: maps, reads and removes each file that the sender names. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connection.h"
#include "messages.h"
#include "consumer.h"

/** A file is a sequence of elements: a frame, the key and the data, each padded to a multiple of 8 bytes. */
struct frame {
    uint32_t data_bytes, key_bytes;
};

static size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

static void take_file(struct consumer *consumer, const char *path) {
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) < 0) die("%s: %m", path);
    char *content = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (content == MAP_FAILED) die("%s cannot be mapped: %m", path);
    close(file);
    size_t at = 0;
    while (at < (size_t)status.st_size) {
        struct frame frame;
        memcpy(&frame, content + at, sizeof frame);
        at += sizeof frame + padded(frame.key_bytes);
        if (at + frame.data_bytes > (size_t)status.st_size) die("%s ends within an element", path);
        consumer_take(consumer, content + at, frame.data_bytes);
        at += padded(frame.data_bytes);
    }
    munmap(content, (size_t)status.st_size);
    if (unlink(path) < 0) die("%s cannot be removed: %m", path);
}

/* One line per file; an empty line ends the round. */
int main(void) {
    messages_from("bench-files");
    struct consumer consumer = {0};
    const int socket = accept_sender();
    FILE *lines = fdopen(socket, "r");
    if (lines == NULL) die("fdopen: %m");
    char path[4096];
    while (fgets(path, sizeof path, lines) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        if (path[0] != '\0') {
            take_file(&consumer, path);
        } else {
            consumer_end_round(&consumer);
            acknowledge_round(socket);
        }
    }
    consumer_print(&consumer);
    fclose(lines);
    return 0;
}
