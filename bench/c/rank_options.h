#ifndef RANK_OPTIONS_H
#define RANK_OPTIONS_H

/** The work of a rank on each block. */
enum consumption {
    CONSUME_SUM,     /* reads every byte in place */
    CONSUME_COPY,    /* copies it to private memory, and reads the copy */
    CONSUME_RELEASE, /* does not read it: shows the speed of the task alone */
};

struct rank_options {
    const char *local_rank;
    enum consumption consumption;
};

/** Parses the command line, or ends the program. */
struct rank_options rank_options_parse(int argc, char **argv);

#endif
