#include "pair_progress.h"

static bool is_same_pair(const struct pair_look *one, const struct pair_look *other) {
    return one->has_header && other->has_header && one->generation == other->generation;
}

static void learn_rates(struct pair_progress *progress, const struct pair_look *before) {
    const struct pair_look *now = &progress->look;
    const double seconds = (double)(now->time - before->time) / 1e9;
    if (!now->has_progress || !before->has_progress || seconds <= 0) return;
    /* Numbers of another process: they may go back. */
    if (now->elements < before->elements || now->bytes < before->bytes) return;
    progress->elements_per_second = (double)(now->elements - before->elements) / seconds;
    progress->bytes_per_second = (double)(now->bytes - before->bytes) / seconds;
}

/*
 * Two witnesses, each of which says at most how long: the time that the last write left on the pipes, and the earlier
 * looks. The pipes know it at the first look; but once a request pipe is full of wake-ups that a busy task need not
 * read, a release leaves no time there.
 */
static void learn_waiting(struct pair_progress *progress) {
    const struct pair_look *now = &progress->look;
    if (now->waiting == NOBODY_WAITS) return;
    progress->waiting_seconds = now->quiet_seconds;
    if (progress->changed_after == 0) return;
    const double seen = (double)(now->time - progress->changed_after) / 1e9;
    if (progress->waiting_seconds < 0 || seen < progress->waiting_seconds) progress->waiting_seconds = seen;
}

void pair_progress(struct pair_progress *progress, const struct pair_files *files, const struct pair_progress *before) {
    *progress = (struct pair_progress){.elements_per_second = -1, .bytes_per_second = -1, .waiting_seconds = -1};
    pair_look(&progress->look, files);
    const struct pair_look *now = &progress->look;
    if (before != NULL && is_same_pair(now, &before->look)) {
        const bool changed = now->published != before->look.published || now->released != before->look.released;
        progress->changed_after = changed ? before->look.time : before->changed_after;
        learn_rates(progress, &before->look);
    }
    learn_waiting(progress);
}
