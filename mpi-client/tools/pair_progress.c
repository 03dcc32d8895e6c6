#include "pair_progress.h"

static bool is_same_pair(const struct pair_snapshot *one, const struct pair_snapshot *other) {
    return one->has_header && other->has_header && one->generation == other->generation;
}

static void set_rates(struct pair_progress *progress, const struct pair_snapshot *before) {
    const struct pair_snapshot *now = &progress->snapshot;
    const double seconds = (double)(now->time - before->time) / 1e9;
    if (!now->has_progress || !before->has_progress || seconds <= 0) return;
    /* Another process writes these numbers: they may decrease. */
    if (now->elements < before->elements || now->bytes < before->bytes) return;
    progress->elements_per_second = (double)(now->elements - before->elements) / seconds;
    progress->bytes_per_second = (double)(now->bytes - before->bytes) / seconds;
}

/*
 * Two upper bounds: the time of the last write to the pipes, and the earlier snapshots. The pipes give a bound at the
 * first snapshot. But a busy task need not read its request pipe; once that is full, releases leave no time there.
 */
static void set_waiting(struct pair_progress *progress) {
    const struct pair_snapshot *now = &progress->snapshot;
    if (now->waiting == NOBODY_WAITS) return;
    progress->waiting_seconds = now->quiet_seconds;
    if (progress->changed_after == 0) return;
    const double seen = (double)(now->time - progress->changed_after) / 1e9;
    if (progress->waiting_seconds < 0 || seen < progress->waiting_seconds) progress->waiting_seconds = seen;
}

void pair_progress(struct pair_progress *progress, const struct pair_files *files, const struct pair_progress *before) {
    *progress = (struct pair_progress){.elements_per_second = -1, .bytes_per_second = -1, .waiting_seconds = -1};
    pair_snapshot_take(&progress->snapshot, files);
    const struct pair_snapshot *now = &progress->snapshot;
    if (before != NULL && is_same_pair(now, &before->snapshot)) {
        const bool changed = now->published != before->snapshot.published || now->released != before->snapshot.released;
        progress->changed_after = changed ? before->snapshot.time : before->changed_after;
        set_rates(progress, &before->snapshot);
    }
    set_waiting(progress);
}
