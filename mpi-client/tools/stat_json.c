#include "stat_json.h"

#include <time.h>

#include "json_text.h"

static json_t *integer(bool known, uint64_t value) {
    /* JSON's integers are signed here; a count beyond that is nobody's. */
    return known && value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

static json_t *real(double value) { return value >= 0 ? json_real(value) : json_null(); }

static json_t *text(const char *words) { return words[0] != '\0' ? json_text(words) : json_null(); }

static json_t *pair(const struct pair_files *files, const struct pair_progress *progress) {
    static const char *const waiting[] = {"", "rank", "task"};
    const struct pair_look *look = &progress->look;
    const bool has_block = look->has_progress && look->published > 0;
    const int local_rank = files->local_rank >= 0 ? files->local_rank : look->local_rank;
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "mapped_file", json_text(files->mapped_file), "pair", integer(local_rank >= 0, (uint64_t)local_rank), "state",
        pair_state_name(look->state), "text", text(look->text), "rank", integer(look->rank >= 0, (uint64_t)look->rank),
        "epoch", integer(has_block, look->epoch), "partition",
        integer(has_block && look->has_partition, look->partition), "elements",
        integer(look->has_progress, look->elements), "bytes", integer(look->has_progress, look->bytes),
        "elements_per_second", real(progress->elements_per_second), "bytes_per_second",
        real(progress->bytes_per_second), "blocks_in_ring", integer(look->has_header, look->published - look->released),
        "ring_blocks", integer(look->has_header, look->block_count), "block_bytes",
        integer(look->has_header, look->block_bytes), "waiting", text(waiting[look->waiting]), "waiting_seconds",
        real(progress->waiting_seconds), "rank_pid", integer(look->rank_pid != 0, look->rank_pid), "task_pid",
        integer(look->task_pid != 0, look->task_pid), "task_attempt", integer(look->task_pid != 0, look->task_attempt));
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
