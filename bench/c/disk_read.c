/**
 * The disk baseline: reads all files below a folder from the disk, one after the other, once in each round. Drops them
 * from the kernel's cache before and after. With "direct" it reads past that cache, in which a rank may hold pages.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"
#include "rounds.h"

enum { READ_BYTES = 4 << 20, DEPTH = 16, PAGE = 4096 };

static void *buffer;
static int direct;
static uint64_t files_read, bytes_read;

static int open_file(const char *path, int flags) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (file < 0) die("%s: %m", path);
    return file;
}

/* Only clean pages can be dropped. */
static int drop(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)place;
    if (type != FTW_F) return 0;
    const int file = open_file(path, 0);
    if (fdatasync(file) < 0) die("%s: %m", path);
    const int code = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (code != 0) die("%s: posix_fadvise: %s", path, strerror(code));
    close(file);
    return 0;
}

static int read_whole(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)place;
    if (type != FTW_F) return 0;
    const int file = open_file(path, direct);
    posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    ssize_t n;
    while ((n = read(file, buffer, READ_BYTES)) > 0) bytes_read += (uint64_t)n;
    if (n < 0) die("%s: %m", path);
    close(file);
    files_read++;
    return 0;
}

static void visit(const char *folder, int (*visitor)(const char *, const struct stat *, int, struct FTW *)) {
    if (nftw(folder, visitor, DEPTH, FTW_PHYS) != 0) die("%s: %m", folder);
}

int main(int argc, char **argv) {
    messages_from("bench-disk");
    if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "direct") != 0)) die("usage: bench-disk FOLDER [direct]");
    direct = argc == 3 ? O_DIRECT : 0;
    if (posix_memalign(&buffer, PAGE, READ_BYTES) != 0) die("no memory for a buffer of %d bytes", READ_BYTES);
    char line[16];
    while (next_round(line, sizeof line)) {
        files_read = bytes_read = 0;
        visit(argv[1], drop);
        const struct round round = round_begin();
        visit(argv[1], read_whole);
        const struct round_times times = round_end(round);
        visit(argv[1], drop);
        answer_round(times, files_read, bytes_read, 0);
    }
    free(buffer);
    return 0;
}
