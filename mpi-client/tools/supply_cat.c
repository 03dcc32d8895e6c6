/** supply-cat: prints the elements that this rank receives. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_line.h"
#include "output.h"
#include "supply.h"

enum { TIMEOUT = COMMAND_LINE_OWN, RING, BLOCK, GROUP, COUNT };
static const struct option option_names[] = {
    COMMAND_LINE_COMMON,
    {"timeout", required_argument, NULL, TIMEOUT},
    {"ring", required_argument, NULL, RING},
    {"block", required_argument, NULL, BLOCK},
    {"group", required_argument, NULL, GROUP},
    {"count", no_argument, NULL, COUNT},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-cat",
    .options = option_names,
    .usage =
        "Usage: supply-cat [options]\n"
        "Prints the elements that this rank receives from Spark, one on each line, tab-separated: epoch, key\n"
        "(backslash and bytes outside printable ASCII as \\xNN), label, channels, height, width, encoded (0 or 1),\n"
        "bytes of data, CRC-32 of data.\n"
        "\n"
        "Options:\n" COMMAND_LINE_FILES COMMAND_LINE_LINE
        "  --timeout SECONDS     timeout of each wait (default: SUPPLY_TIMEOUT, or 120)\n"
        "  --ring SIZE           size of the ring, as 16MiB (default: ring= of the line, or four blocks)\n"
        "  --block SIZE          size of a block (default: block= of the line, or a quarter of the ring, or 2MiB)\n"
        "  --group NAME          group whose members may also feed this rank (default: group= of the line, or none)\n"
        "  --count               print only the totals: epochs, elements, bytes of data\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 after the end of data, 1 on a failure, 2 on a wrong option, 128 + N after signal N.\n",
};

struct run {
    supply_t *supply;
    bool count_only;
    struct totals totals;
};

/* The end of a run: the exit status, and the reason for Spark if Spark does not know it. */
struct end {
    int exit_status;
    const char *reason;
};

static const struct end no_end = {-1, NULL};

static struct end end_by_output(void) {
    if (interruption_signal() != 0) return no_end;
    fprintf(stderr, "%s: standard output: %m\n", tool.name);
    return (struct end){1, "supply-cat could not write its standard output"};
}

static struct end end_by_supply(const struct run *run) {
    fprintf(stderr, "%s: %s\n", tool.name, supply_error(run->supply));
    return (struct end){1, NULL};
}

/* The block is valid, but does not hold Datums: this tool cannot print it. */
static struct end end_by_columns(const struct run *run) {
    end_by_supply(run);
    return (struct end){1, supply_error(run->supply)};
}

static struct end print_block(struct run *run, const supply_block_t *block) {
    for (uint32_t i = 0; i < block->element_count; i++) {
        supply_datum_t datum;
        if (supply_datum(run->supply, block, i, &datum) != SUPPLY_OK) return end_by_columns(run);
        run->totals.elements++;
        run->totals.bytes += datum.data_bytes;
        if (!run->count_only && !output_element(stdout, &datum)) return end_by_output();
    }
    return supply_release(run->supply, block) == SUPPLY_OK ? no_end : end_by_supply(run);
}

static struct end print_end(struct run *run) {
    if ((run->count_only && !output_totals(stdout, &run->totals)) || fflush(stdout) != 0) return end_by_output();
    return (struct end){0, NULL};
}

/* Receives the next block. Shows what is printed before it waits. */
static struct end step(struct run *run) {
    supply_block_t block;
    supply_status_t status = supply_try_next(run->supply, &block);
    if (status == SUPPLY_AGAIN) {
        if (fflush(stdout) != 0) return end_by_output();
        status = supply_next(run->supply, &block);
    }
    switch (status) {
        case SUPPLY_OK:
            return print_block(run, &block);
        case SUPPLY_END_OF_EPOCH:
            run->totals.epochs++;
            return no_end;
        case SUPPLY_END_OF_DATA:
            return print_end(run);
        case SUPPLY_INTERRUPTED:
            return no_end;
        default:
            return end_by_supply(run);
    }
}

/* Does not flush: the reader of the output may have stalled. */
static _Noreturn void cat_end_by_signal(struct run *run) {
    supply_abort(run->supply, "supply-cat was ended by a signal");
    fprintf(stderr, "%s: ended by %s\n", tool.name, interruption_signal() == SIGINT ? "SIGINT" : "SIGTERM");
    _exit(128 + interruption_signal());
}

static int cat_receive(struct run *run) {
    struct end end = no_end;
    while (end.exit_status < 0) {
        if (interruption_signal() != 0) cat_end_by_signal(run);
        end = step(run);
    }
    if (end.reason != NULL) {
        supply_abort(run->supply, end.reason);
        return end.exit_status;
    }
    const supply_status_t closed = supply_close(run->supply);
    if (closed == SUPPLY_INTERRUPTED) cat_end_by_signal(run);
    if (closed < 0) fprintf(stderr, "%s: %s at the end\n", tool.name, supply_status_name(closed));
    return closed < 0 ? 1 : end.exit_status;
}

/* If the caller closed a standard stream, no descriptor of the pair may take its place. */
static bool keep_standard_streams(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        if (fd == STDOUT_FILENO) {
            fprintf(stderr, "%s: standard output is closed\n", tool.name);
            return false;
        }
        if (open("/dev/null", O_RDWR) != fd) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    if (!keep_standard_streams()) return 1;
    struct run run = {0};
    struct pair_selection selection = NO_PAIR_SELECTION;
    supply_options_t options;
    supply_options_init(&options);
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) != -1;) {
        switch (option) {
            case TIMEOUT:
                options.timeout = command_line_seconds(&tool, "--timeout", optarg);
                break;
            case RING:
                options.ring_bytes = command_line_size(&tool, "--ring", optarg);
                break;
            case BLOCK:
                options.block_bytes = command_line_size(&tool, "--block", optarg);
                break;
            case GROUP:
                options.group = optarg;
                break;
            case COUNT:
                run.count_only = true;
                break;
        }
    }
    options.mapped_files = selection.mapped_files;
    options.named_pipes = selection.named_pipes;
    options.local_rank = selection.local_rank;
    options.interrupted = interruption_came;
    if (interruption_install() != 0) {
        fprintf(stderr, "%s: cannot install signal handlers: %m\n", tool.name);
        return 1;
    }
    if (supply_open(&run.supply, &options) != SUPPLY_OK) {
        fprintf(stderr, "%s: %s\n", tool.name, supply_error(run.supply));
        supply_close(run.supply);
        return 1;
    }
    return cat_receive(&run);
}
