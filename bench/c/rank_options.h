#ifndef RANK_OPTIONS_H
#define RANK_OPTIONS_H

/** What a rank does with a block. */
enum consumption {
    CONSUME_SUM,     /* reads every byte of it in place */
    CONSUME_COPY,    /* copies it to private memory */
    CONSUME_RELEASE, /* nothing: what the task alone can do */
};

struct rank_options {
    const char *local_rank;
    enum consumption consumption;
};

/** Parses the command line, or ends the program. */
struct rank_options rank_options_parse(int argc, char **argv);

#endif
