#ifndef EXCHANGE_OPTIONS_H
#define EXCHANGE_OPTIONS_H

#include <stdbool.h>
#include <supply_exchange.h>

/** The work of a rank on each block. */
enum exchange_consumption {
    CONSUME_BYTES,  /* reads every byte of `data`; in epoch 0 by element */
    CONSUME_GROUPS, /* counts pairs and their keys */
    CONSUME_SORTED, /* the same of pairs that are sorted by their keys */
};

struct exchange_options {
    bool exchanged; /* false: each rank reads what its task supplies */
    supply_exchange_options_t exchange;
    enum exchange_consumption consumption;
};

/** Parses the command line, or ends the program. */
struct exchange_options exchange_options_parse(int argc, char **argv);

#endif
