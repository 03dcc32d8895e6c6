#include "stat_json.h"

#include <time.h>

#include "json_text.h"
#include "layout.h"

static json_t *integer(bool known, uint64_t value) {
    /* jansson's integers are signed. No real count exceeds them. */
    return known && value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

static json_t *real(double value) { return value >= 0 ? json_real(value) : json_null(); }

static json_t *text_or_null(const char *text) { return text[0] != '\0' ? json_text(text) : json_null(); }

/* What the task has announced. A later version of the contract may have more. */
static json_t *exchange(const struct pair_snapshot *snapshot) {
    switch (snapshot->exchange) {
        case 0:
            return json_null();
        case EXCHANGE_ALL:
            return json_string("all");
        default:
            return json_string("unknown");
    }
}

static json_t *pair(const struct pair_files *files, const struct pair_progress *progress) {
    static const char *const waiting[] = {"", "rank", "task"};
    const struct pair_snapshot *snapshot = &progress->snapshot;
    const bool has_block = snapshot->has_progress && snapshot->published > 0;
    const int local_rank = files->local_rank >= 0 ? files->local_rank : snapshot->local_rank;
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o}",
        "mapped_file", json_text(files->mapped_file), "pair", integer(local_rank >= 0, (uint64_t)local_rank), "state",
        pair_state_name(snapshot->state), "text", text_or_null(snapshot->text), "rank",
        integer(snapshot->rank >= 0, (uint64_t)snapshot->rank), "epoch", integer(has_block, snapshot->epoch),
        "partition", integer(has_block && snapshot->has_partition, snapshot->partition), "elements",
        integer(snapshot->has_progress, snapshot->elements), "bytes", integer(snapshot->has_progress, snapshot->bytes),
        "referenced_bytes", integer(has_block, snapshot->referenced_bytes), "in_resident_file",
        has_block ? json_boolean(snapshot->in_resident_file) : json_null(), "elements_per_second",
        real(progress->elements_per_second), "bytes_per_second", real(progress->bytes_per_second), "blocks_in_ring",
        integer(snapshot->has_header, snapshot->published - snapshot->released), "ring_blocks",
        integer(snapshot->has_header, snapshot->block_count), "block_bytes",
        integer(snapshot->has_header, snapshot->block_bytes), "waiting", text_or_null(waiting[snapshot->waiting]),
        "waiting_seconds", real(progress->waiting_seconds), "rank_pid",
        integer(snapshot->rank_pid != 0, snapshot->rank_pid), "task_pid",
        integer(snapshot->task_pid != 0, snapshot->task_pid), "task_attempt",
        integer(snapshot->task_pid != 0, snapshot->task_attempt), "epoch_elements",
        integer(snapshot->has_counts, snapshot->epoch_elements), "epoch_steps",
        integer(snapshot->has_counts && snapshot->epoch_steps != 0, snapshot->epoch_steps), "exchange",
        exchange(snapshot), "exchange_fraction",
        real(snapshot->exchange != 0 ? (double)snapshot->exchange_fraction / EXCHANGE_FRACTION_UNIT : -1));
}

bool stat_json_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    json_t *pairs = json_array();
    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(pairs, pair(&list->pairs[i], &progress[i])) != 0) {
            json_decref(pairs);
            return false;
        }
    return json_print_line(
        stream, json_pack("{s:f, s:o}", "time", (double)now.tv_sec + (double)now.tv_nsec / 1e9, "pairs", pairs));
}
