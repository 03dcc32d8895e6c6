#include "rank_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

static const char usage[] = "usage: bench-rank [--local-rank N] [--consume sum|copy|release]\n"
                            "Receives all blocks of its pair, and prints the results as JSON.\n";

static enum consumption consumption(const char *text) {
    if (strcmp(text, "sum") == 0) return CONSUME_SUM;
    if (strcmp(text, "copy") == 0) return CONSUME_COPY;
    if (strcmp(text, "release") == 0) return CONSUME_RELEASE;
    die("--consume: '%s' is none of sum, copy, release", text);
}

struct rank_options rank_options_parse(int argc, char **argv) {
    static const struct option known[] = {
        {"local-rank", required_argument, NULL, 'r'}, {"consume", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
    struct rank_options options = {.consumption = CONSUME_SUM};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'r')
            options.local_rank = optarg;
        else if (option == 'c')
            options.consumption = consumption(optarg);
        else
            break;
    }
    if (option != -1 || optind != argc) {
        fputs(usage, stderr);
        exit(2);
    }
    return options;
}
