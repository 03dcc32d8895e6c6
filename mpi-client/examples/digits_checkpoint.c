/** The checkpoint of train-digits, as text. */
#include "digits_checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static void write_sums(const struct digits_sums *sums, FILE *stream) {
    fprintf(stream, "%.17g %.17g %.17g\n", sums->elements, sums->loss, sums->correct);
}

static bool read_sums(struct digits_sums *sums, FILE *stream) {
    return fscanf(stream, "%lf %lf %lf", &sums->elements, &sums->loss, &sums->correct) == 3;
}

bool digits_checkpoint_save(const struct digits_checkpoint *checkpoint, const char *file) {
    char next[PATH_MAX];
    if (snprintf(next, sizeof next, "%s.next", file) >= (int)sizeof next) {
        errno = ENAMETOOLONG;
        return false;
    }
    FILE *stream = fopen(next, "w");
    if (stream == NULL) return false;
    const struct digits_progress *progress = &checkpoint->progress;
    fprintf(stream, "digits-checkpoint-1 ranks=%d steps=%" PRIu64 " epochs=%" PRIu64 "\n", checkpoint->ranks,
            progress->steps, progress->epochs);
    write_sums(&progress->epoch, stream);
    write_sums(&progress->all, stream);
    for (int rank = 0; rank < checkpoint->ranks; rank++)
        fprintf(stream, "%d %s\n", (int)checkpoint->places[rank].share, checkpoint->places[rank].position);
    softmax_write(&checkpoint->model, stream);
    /* Before the file gets its name it is on the disk. */
    const bool written = !ferror(stream) && fflush(stream) == 0 && fsync(fileno(stream)) == 0;
    return (fclose(stream) == 0) & written && rename(next, file) == 0;
}

static bool read_all(struct digits_checkpoint *checkpoint, FILE *stream) {
    struct digits_progress *progress = &checkpoint->progress;
    int ranks;
    if (fscanf(stream, "digits-checkpoint-1 ranks=%d steps=%" SCNu64 " epochs=%" SCNu64, &ranks, &progress->steps,
               &progress->epochs) != 3)
        return false;
    if (ranks != checkpoint->ranks) return false;
    if (!read_sums(&progress->epoch, stream) || !read_sums(&progress->all, stream)) return false;
    for (int rank = 0; rank < ranks; rank++) {
        int share;
        _Static_assert(SUPPLY_POSITION_TEXT_BYTES == 160, "the width below");
        if (fscanf(stream, "%d %159s", &share, checkpoint->places[rank].position) != 2) return false;
        if (share != TAKES_BLOCK && share != HAS_ENDED_EPOCH) return false;
        checkpoint->places[rank].share = (enum digits_share)share;
    }
    return softmax_read(&checkpoint->model, stream);
}

bool digits_checkpoint_load(struct digits_checkpoint *checkpoint, const char *file) {
    FILE *stream = fopen(file, "r");
    if (stream == NULL) return false;
    errno = 0;
    const bool read = read_all(checkpoint, stream);
    const int error = errno;
    fclose(stream);
    errno = error;
    return read;
}
