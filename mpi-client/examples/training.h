/** Training over MPI on what Spark supplies: every block is a rank's part of a mini-batch. */
#ifndef TRAINING_H
#define TRAINING_H

#include <stdint.h>

#include "softmax.h"
#include "supply.h"

struct training {
    supply_t *supply;
    int rank;
    int ranks;
    struct softmax model;
    double learning_rate; /**< 0: only evaluates */
};

/** Of one epoch, or of all, over all ranks. */
struct training_result {
    uint32_t epochs;
    double elements;
    double loss; /**< mean */
    double accuracy;
};

/**
 * Goes through everything that the ranks receive. Calls report (may be NULL) after each epoch.
 * Collective over MPI_COMM_WORLD; ends the job if a rank fails, with its message on stderr.
 * last: the result of the last epoch; all: of all epochs together.
 */
void training_run(struct training *training, void report(uint32_t epoch, const struct training_result *result),
                  struct training_result *last, struct training_result *all);

/** Ends the job: closes the pair, so that Spark learns of it, and aborts MPI with exit status 1. */
_Noreturn void training_fail(struct training *training, const char *message);

#endif
