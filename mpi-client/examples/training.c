#include "training.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the ranks add up in every step. Only doubles, so that one all-reduce adds them. */
struct step {
    struct softmax_sums sums;
    double received; /* ranks that had a block */
    double finished; /* ranks that have seen the end of data */
};

_Noreturn void training_fail(struct training *training, const char *message) {
    fprintf(stderr, "train-digits: rank %d: %s\n", training->rank, message);
    supply_abort(training->supply, message);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static supply_column_t column(struct training *training, const supply_block_t *block, const char *name) {
    supply_column_t column;
    int index = supply_column_index(training->supply, name);
    if (index < 0) training_fail(training, "the elements have no column 'label' or 'data': are they Datums?");
    if (supply_column(training->supply, block, index, &column) != SUPPLY_OK)
        training_fail(training, supply_error(training->supply));
    return column;
}

/* Reads the block where Spark wrote it. */
static void add_block(struct training *training, const supply_block_t *block, struct softmax_sums *sums) {
    const supply_column_t labels = column(training, block, "label");
    const supply_column_t data = column(training, block, "data");
    if (strcmp(labels.format, "i") != 0) training_fail(training, "'label' is not of a Datum's type");
    for (uint32_t i = 0; i < block->element_count; i++) {
        const int32_t label = ((const int32_t *)labels.data)[i];
        const void *pixels;
        size_t bytes;
        if (supply_value(&data, i, &pixels, &bytes) != SUPPLY_OK)
            training_fail(training, "'data' is not of a Datum's type, or was written to while it was read");
        if (label < 0 || label >= SOFTMAX_CLASSES || bytes != SOFTMAX_PIXELS) {
            char message[160];
            snprintf(message, sizeof message,
                     "element %llu of partition %u has label %d and %zu bytes: not a digit of 8 x 8 pixels",
                     (unsigned long long)block->first_element + i, block->partition, label, bytes);
            training_fail(training, message);
        }
        softmax_add(&training->model, pixels, label, sums);
    }
}

enum share { BLOCK, END_OF_EPOCH, END_OF_DATA };

/* This rank's part of a step: a block, or nothing. */
static enum share take_share(struct training *training, struct softmax_sums *sums) {
    supply_block_t block;
    const supply_status_t status = supply_next(training->supply, &block);
    if (status == SUPPLY_END_OF_EPOCH) return END_OF_EPOCH;
    if (status == SUPPLY_END_OF_DATA) return END_OF_DATA;
    if (status != SUPPLY_OK) training_fail(training, supply_error(training->supply));
    add_block(training, &block, sums);
    if (supply_release(training->supply, &block) != SUPPLY_OK) training_fail(training, supply_error(training->supply));
    return BLOCK;
}

static void add(struct training_result *result, const struct softmax_sums *sums) {
    result->elements += sums->elements;
    result->loss += sums->loss;
    result->accuracy += sums->correct;
}

/* From sums to means. */
static struct training_result mean(struct training_result result) {
    if (result.elements > 0) {
        result.loss /= result.elements;
        result.accuracy /= result.elements;
    }
    return result;
}

/*
 * One epoch over all ranks. Their shares differ, so a rank whose epoch has ended continues to add nothing until all
 * are there: every rank takes part in every all-reduce. Returns whether there was one, or the data has ended.
 */
static bool run_epoch(struct training *training, struct training_result *result) {
    enum share share = BLOCK;
    struct step step;
    do {
        step = (struct step){0};
        if (share == BLOCK) share = take_share(training, &step.sums);
        step.received = share == BLOCK;
        step.finished = share == END_OF_DATA;
        MPI_Allreduce(MPI_IN_PLACE, &step, sizeof step / sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        add(result, &step.sums);
        if (step.received > 0) softmax_descend(&training->model, &step.sums, training->learning_rate);
    } while (step.received > 0);
    return step.finished < training->ranks;
}

void training_run(struct training *training, void report(uint32_t epoch, const struct training_result *result),
                  struct training_result *last, struct training_result *all) {
    struct training_result total = {0};
    *last = (struct training_result){0};
    for (;;) {
        struct training_result epoch = {.epochs = 1};
        if (!run_epoch(training, &epoch)) break;
        total.epochs++;
        total.elements += epoch.elements;
        total.loss += epoch.loss;
        total.accuracy += epoch.accuracy;
        *last = mean(epoch);
        if (report != NULL) report(total.epochs, last);
    }
    *all = mean(total);
}
