#include "exchange_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define SORT_MEMORY ((size_t)8 << 30)

static const char usage[] =
    "usage: bench-exchange [--exchange none|groups|sorted] [--window BYTES]\n"
    "Receives all elements, and prints the results of all ranks as JSON. none: no exchange; reads every byte.\n"
    "groups, sorted: pairs that the ranks exchange by the hash, or the order, of their keys.\n";

static void set_exchange(struct exchange_options *options, const char *name) {
    options->exchanged = strcmp(name, "none") != 0;
    if (!options->exchanged) return;
    options->exchange.column = "key";
    if (strcmp(name, "groups") == 0) {
        options->exchange.policy = SUPPLY_EXCHANGE_HASH;
        options->consumption = CONSUME_GROUPS;
    } else if (strcmp(name, "sorted") == 0) {
        options->exchange.policy = SUPPLY_EXCHANGE_RANGE;
        /* Spark's memory holds all pairs, too. */
        options->exchange.memory_bytes = SORT_MEMORY;
        options->consumption = CONSUME_SORTED;
    } else {
        die("--exchange: '%s' is none of none, groups, sorted", name);
    }
}

struct exchange_options exchange_options_parse(int argc, char **argv) {
    static const struct option known[] = {
        {"exchange", required_argument, NULL, 'e'}, {"window", required_argument, NULL, 'w'}, {NULL, 0, NULL, 0}};
    struct exchange_options options = {.consumption = CONSUME_BYTES};
    supply_exchange_options_init(&options.exchange);
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'e')
            set_exchange(&options, optarg);
        else if (option == 'w')
            options.exchange.window_bytes = strtoull(optarg, NULL, 10);
        else
            break;
    }
    if (option != -1 || optind != argc) {
        fputs(usage, stderr);
        exit(2);
    }
    return options;
}
