/** Prints what supply-stat knows of a pair: as a row of a table, or as a line of JSON. */
#include "stat_output.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <time.h>

#include "json_text.h"
#include "layout.h"

/* Enough for a path, and for the failure text of a side. */
#define LINE_BYTES 8192

#define TO_THE_TOP "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

/** Where to print. */
struct page {
    FILE *stream;
    bool redraws;
    size_t columns; /* 0: no limit */
    size_t lines;   /* left, if redraws */
};

static struct page open_page(FILE *stream, bool redraws) {
    struct page page = {.stream = stream, .redraws = redraws};
    struct winsize window;
    if (!redraws) return page;
    const bool known = ioctl(fileno(stream), TIOCGWINSZ, &window) == 0 && window.ws_row > 1 && window.ws_col > 0;
    page.lines = known ? window.ws_row - 1u : 24 - 1;
    page.columns = known ? window.ws_col : 80;
    fputs(TO_THE_TOP, stream);
    return page;
}

/* supply__copy_line() removes control characters. */
static void print_line(struct page *page, const char *line) {
    char text[LINE_BYTES];
    if (page->redraws && page->lines == 0) return;
    if (page->redraws) page->lines--;
    const bool narrow = page->columns > 0 && page->columns < sizeof text;
    supply__copy_line(text, narrow ? page->columns + 1 : sizeof text, line, LINE_BYTES);
    fprintf(page->stream, "%s%s\n", text, page->redraws ? CLEAR_LINE : "");
}

static const char *number(char text[32], bool known, double value, const char *format) {
    snprintf(text, 32, known ? format : "-", value);
    return text;
}

static const char *waits(char text[64], const struct pair_progress *pair) {
    static const char *const names[] = {"-", "rank for task", "task for rank"};
    if (pair->waiting_seconds < 0)
        snprintf(text, 64, "%s", names[pair->snapshot.waiting]);
    else
        snprintf(text, 64, "%s %.1f s", names[pair->snapshot.waiting], pair->waiting_seconds);
    return text;
}

/* What the exchange of a pair has done, on a line of its own. */
static void table_print_exchange(struct page *page, const struct exchange_totals *totals) {
    char line[LINE_BYTES];
    const uint64_t others = totals->ranks - 1, sent = others - totals->copying_ranks - totals->forwarded_ranks;
    snprintf(line, sizeof line,
             "%6sexchange of %" PRIu64 " ranks: copies to %" PRIu64 ", sends to %" PRIu64
             ", through two levels to %" PRIu64 "; %" PRIu64 " windows of %.1f MB, %" PRIu64 " rounds, %" PRIu64
             " collectives; copied %.3f GB, sent %.3f GB; "
             "%.1f s gathering, %.1f s agreeing, %.1f s copying, %.1f s sending",
             "", totals->ranks, totals->copying_ranks, sent, totals->forwarded_ranks, totals->windows,
             (double)totals->window_bytes / 1e6, totals->rounds, totals->collectives,
             (double)totals->copied_bytes / 1e9, (double)totals->sent_bytes / 1e9, (double)totals->gathering / 1e9,
             (double)totals->agreeing / 1e9, (double)totals->copying / 1e9, (double)totals->sending / 1e9);
    print_line(page, line);
}

#define ROW "%4s  %-9s %6s %9s %12s %8s %9s  %-22s %8s %8s  %s"

static void table_print_pair(struct page *page, const struct pair_files *files, const struct pair_progress *pair) {
    const struct pair_snapshot *snapshot = &pair->snapshot;
    char line[LINE_BYTES], local_rank[32], epoch[32], partition[32], elements[32], bytes[32], ring[48], waiting[64],
        rank[32], task[32];
    const int known_rank = files->local_rank >= 0 ? files->local_rank : snapshot->local_rank;
    const bool has_block = snapshot->has_progress && snapshot->published > 0;
    if (snapshot->has_header)
        snprintf(ring, sizeof ring, "%" PRIu64 "/%" PRIu32, snapshot->published - snapshot->released,
                 snapshot->block_count);
    else
        snprintf(ring, sizeof ring, "-");
    snprintf(line, sizeof line, ROW, number(local_rank, known_rank >= 0, known_rank, "%.0f"),
             pair_state_name(snapshot->state), number(epoch, has_block, snapshot->epoch, "%.0f"),
             number(partition, has_block && snapshot->has_partition, snapshot->partition, "%.0f"),
             number(elements, pair->elements_per_second >= 0, pair->elements_per_second, "%.0f"),
             number(bytes, pair->bytes_per_second >= 0, pair->bytes_per_second / 1e9, "%.2f"), ring,
             waits(waiting, pair), number(rank, snapshot->rank_pid != 0, snapshot->rank_pid, "%.0f"),
             number(task, snapshot->task_pid != 0, snapshot->task_pid, "%.0f"), files->mapped_file);
    print_line(page, line);
    if (snapshot->exchange_totals.ranks > 0) table_print_exchange(page, &snapshot->exchange_totals);
    if (snapshot->text[0] != '\0')
        snprintf(line, sizeof line, "%6s%s", "", snapshot->text);
    else if (snapshot->referenced_bytes > 0)
        snprintf(line, sizeof line, "%6s%.0f %% of the last block's bytes are in place, not copied", "",
                 100.0 * snapshot->referenced_bytes / (double)snapshot->last_bytes);
    else if (snapshot->in_resident_file)
        snprintf(line, sizeof line, "%6sthe last block is in a resident file, not copied", "");
    else
        return;
    print_line(page, line);
}

void stat_table_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress, bool redraws) {
    struct page page = open_page(stream, redraws);
    char line[LINE_BYTES];
    snprintf(line, sizeof line, ROW, "PAIR", "STATE", "EPOCH", "PARTITION", "ELEMENTS/S", "GB/S", "RING", "WAITS",
             "RANK", "TASK", "MAPPED FILE");
    print_line(&page, line);
    for (size_t i = 0; i < list->count; i++) {
        /* A pair may take two lines, and one for its exchange. */
        const size_t lines = progress[i].snapshot.exchange_totals.ranks > 0 ? 3 : 2;
        if (redraws && page.lines <= lines && i + 1 < list->count) {
            snprintf(line, sizeof line, "%6s(%zu pairs more: make the window larger, or select some with --local-rank)",
                     "", list->count - i);
            print_line(&page, line);
            break;
        }
        table_print_pair(&page, &list->pairs[i], &progress[i]);
    }
    if (redraws) fputs(CLEAR_BELOW, stream);
}

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

struct total {
    const char *name; /* in JSON; in Prometheus "supply_exchange_NAME", of a counter with "_total" at its end */
    size_t offset;    /* in struct exchange_totals */
    bool is_counter;
    double unit;
    const char *help;
};

#define RANKS(name, help) {#name, offsetof(struct exchange_totals, name), false, 1, help}
#define COUNT(name, help) {#name, offsetof(struct exchange_totals, name), true, 1, help}
#define SECONDS(name, help) {#name "_seconds", offsetof(struct exchange_totals, name), true, 1e9, help}
static const struct total totals[] = {
    RANKS(ranks, "Ranks of the exchange."),
    RANKS(copying_ranks, "Other ranks into whose memory this one copies."),
    RANKS(forwarded_ranks, "Ranks of other nodes that get messages through one rank of their node."),
    RANKS(window_bytes, "Size of a window of the exchange."),
    COUNT(windows, "Windows that the rank has gathered."),
    COUNT(rounds, "Rounds in which windows moved."),
    COUNT(collectives, "Collective operations of the exchange."),
    COUNT(copied_bytes, "Bytes of elements copied into the memory of ranks, this one included."),
    COUNT(sent_bytes, "Bytes of elements sent in messages."),
    SECONDS(gathering, "Time until Spark had supplied windows."),
    SECONDS(agreeing, "Time to agree with all ranks."),
    SECONDS(copying, "Time to copy, and until other ranks had copied."),
    SECONDS(sending, "Time until messages had come."),
};
#define TOTALS (sizeof totals / sizeof *totals)

static double total_value(const struct total *total, const struct pair_snapshot *snapshot) {
    uint64_t value;
    memcpy(&value, (const char *)&snapshot->exchange_totals + total->offset, sizeof value);
    return (double)value / total->unit;
}

/* NULL: there is none. */
static json_t *exchange_totals(const struct pair_snapshot *snapshot) {
    if (snapshot->exchange_totals.ranks == 0) return json_null();
    json_t *object = json_object();
    for (size_t i = 0; i < TOTALS; i++) {
        const double value = total_value(&totals[i], snapshot);
        json_object_set_new(object, totals[i].name, totals[i].unit > 1 ? real(value) : integer(true, (uint64_t)value));
    }
    return object;
}

static json_t *table_pair(const struct pair_files *files, const struct pair_progress *progress) {
    static const char *const waiting[] = {"", "rank", "task"};
    const struct pair_snapshot *snapshot = &progress->snapshot;
    const bool has_block = snapshot->has_progress && snapshot->published > 0;
    const int local_rank = files->local_rank >= 0 ? files->local_rank : snapshot->local_rank;
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o}",
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
        real(snapshot->exchange != 0 ? (double)snapshot->exchange_fraction / EXCHANGE_FRACTION_UNIT : -1),
        "exchange_totals", exchange_totals(snapshot));
}

bool stat_json_print(FILE *stream, const struct pair_list *list, const struct pair_progress *progress) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    json_t *pairs = json_array();
    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(pairs, table_pair(&list->pairs[i], &progress[i])) != 0) {
            json_decref(pairs);
            return false;
        }
    return json_print_line(
        stream, json_pack("{s:f, s:o}", "time", (double)now.tv_sec + (double)now.tv_nsec / 1e9, "pairs", pairs));
}

/* Prints what supply-stat knows of all pairs, in Prometheus' text format. */

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

static void print_sample(FILE *stream, const char *name, const struct pair_files *files,
                         const struct pair_progress *progress, double value) {
    fprintf(stream, "%s{", name);
    prometheus_print_pair(stream, files, progress);
    /* Counts below 2^53 are exact. */
    fprintf(stream, "} %.17g\n", value);
}

static void print_metric(FILE *stream, const struct metric *metric, const struct pair_list *list,
                         const struct pair_progress *progress) {
    print_head(stream, metric->name, metric->type, metric->help);
    for (size_t i = 0; i < list->count; i++) {
        double value;
        if (metric->value(&progress[i], &value))
            print_sample(stream, metric->name, &list->pairs[i], &progress[i], value);
    }
}

static void print_total(FILE *stream, const struct total *total, const struct pair_list *list,
                        const struct pair_progress *progress) {
    char name[64];
    snprintf(name, sizeof name, "supply_exchange_%s%s", total->name, total->is_counter ? "_total" : "");
    print_head(stream, name, total->is_counter ? "counter" : "gauge", total->help);
    for (size_t i = 0; i < list->count; i++)
        if (progress[i].snapshot.exchange_totals.ranks > 0)
            print_sample(stream, name, &list->pairs[i], &progress[i], total_value(total, &progress[i].snapshot));
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
    for (size_t i = 0; i < TOTALS; i++) print_total(stream, &totals[i], list, progress);
}
