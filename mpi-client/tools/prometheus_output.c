/** Prints what supply-stat knows of all pairs, in Prometheus' text format. */
#include "prometheus_output.h"

#include <inttypes.h>

struct metric {
    const char *name;
    const char *type;
    const char *help;
    /** False: not known. */
    bool (*value)(const struct pair_progress *pair, double *value);
};

#define VALUE(name, number, is_known)                                                                                  \
    static bool name(const struct pair_progress *pair, double *value) {                                                \
        *value = (double)(number);                                                                                     \
        return is_known;                                                                                               \
    }
VALUE(elements, pair->snapshot.elements, pair->snapshot.has_progress)
VALUE(bytes, pair->snapshot.bytes, pair->snapshot.has_progress)
VALUE(published, pair->snapshot.published, pair->snapshot.has_header)
VALUE(released, pair->snapshot.released, pair->snapshot.has_header)
VALUE(ring_blocks, pair->snapshot.block_count, pair->snapshot.has_header)
VALUE(block_bytes, pair->snapshot.block_bytes, pair->snapshot.has_header)
VALUE(epoch, pair->snapshot.epoch, pair->snapshot.has_progress && pair->snapshot.published > 0)
VALUE(epoch_elements, pair->snapshot.epoch_elements, pair->snapshot.has_counts)
VALUE(attempt, pair->snapshot.task_attempt, pair->snapshot.task_pid != 0)
VALUE(rank_waits, pair->snapshot.waiting == RANK_WAITS, pair->snapshot.has_header)
VALUE(task_waits, pair->snapshot.waiting == TASK_WAITS, pair->snapshot.has_header)
VALUE(waiting_seconds, pair->waiting_seconds, pair->waiting_seconds >= 0)

static const struct metric metrics[] = {
    {"supply_elements_total", "counter", "Elements that the task has published.", elements},
    {"supply_bytes_total", "counter", "Bytes of the published blocks, with the values in place to which they refer.",
     bytes},
    {"supply_published_blocks_total", "counter", "Blocks that the task has published, with ends of epochs.", published},
    {"supply_released_blocks_total", "counter", "Blocks that the rank has released, with ends of epochs.", released},
    {"supply_ring_blocks", "gauge", "Blocks that the ring can have.", ring_blocks},
    {"supply_block_bytes", "gauge", "Bytes of a slot of the ring.", block_bytes},
    {"supply_epoch", "gauge", "Epoch of the last published block, from 0.", epoch},
    {"supply_epoch_elements", "gauge", "Elements of a whole epoch.", epoch_elements},
    {"supply_task_attempt", "gauge", "Attempt of the task that is or was attached, from 0.", attempt},
    {"supply_rank_waits", "gauge", "1 if the rank waits for the task, else 0.", rank_waits},
    {"supply_task_waits", "gauge", "1 if the task waits for the rank, else 0.", task_waits},
    {"supply_waiting_seconds", "gauge", "How long one side has been waiting for the other, at most.", waiting_seconds},
};

/* In the format, a value of a label has three characters that are escaped. It must be UTF-8: a path may not be. */
static void print_label(FILE *stream, const char *name, const char *value) {
    fprintf(stream, "%s=\"", name);
    for (const unsigned char *at = (const unsigned char *)value; *at != '\0'; at++) {
        if (*at == '\n')
            fputs("\\n", stream);
        else if (*at == '\\' || *at == '"')
            fprintf(stream, "\\%c", *at);
        else if (*at < ' ' || *at >= 0x7f)
            fprintf(stream, "%%%02X", *at);
        else
            fputc(*at, stream);
    }
    fputc('"', stream);
}

/* The rank and the mapped file name a pair. */
static void prometheus_print_pair(FILE *stream, const struct pair_files *files, const struct pair_progress *progress) {
    const struct pair_snapshot *snapshot = &progress->snapshot;
    const int local_rank = files->local_rank >= 0 ? files->local_rank : snapshot->local_rank;
    char number[16];
    print_label(stream, "mapped_file", files->mapped_file);
    snprintf(number, sizeof number, local_rank >= 0 ? "%d" : "", local_rank);
    fputc(',', stream);
    print_label(stream, "pair", number);
    snprintf(number, sizeof number, snapshot->has_header && snapshot->rank >= 0 ? "%" PRId32 : "", snapshot->rank);
    fputc(',', stream);
    print_label(stream, "rank", number);
}

static void print_head(FILE *stream, const char *name, const char *type, const char *help) {
    fprintf(stream, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_metric(FILE *stream, const struct metric *metric, const struct pair_list *list,
                         const struct pair_progress *progress) {
    print_head(stream, metric->name, metric->type, metric->help);
    for (size_t i = 0; i < list->count; i++) {
        double value;
        if (!metric->value(&progress[i], &value)) continue;
        fprintf(stream, "%s{", metric->name);
        prometheus_print_pair(stream, &list->pairs[i], &progress[i]);
        /* Counts below 2^53 are exact. */
        fprintf(stream, "} %.17g\n", value);
    }
}

void prometheus_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress) {
    print_head(stream, "supply_pair_info", "gauge", "1 for each pair, with its state.");
    for (size_t i = 0; i < list->count; i++) {
        fputs("supply_pair_info{", stream);
        prometheus_print_pair(stream, &list->pairs[i], &progress[i]);
        fputc(',', stream);
        print_label(stream, "state", pair_state_name(progress[i].snapshot.state));
        fputs("} 1\n", stream);
    }
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) print_metric(stream, &metrics[i], list, progress);
}
