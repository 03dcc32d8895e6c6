/**
 * What train-digits needs to continue after its ranks were killed: one file, which has the weights after a step and the
 * position of every rank at that step. So neither can be older than the other.
 */
#ifndef DIGITS_CHECKPOINT_H
#define DIGITS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "softmax.h"
#include "supply.h"

/** Sums of one epoch, or of all, over all ranks. */
struct digits_sums {
    double elements;
    double loss;
    double correct;
};

/** Where the training is. The same on all ranks. */
struct digits_progress {
    uint64_t steps;
    uint64_t epochs; /**< that are complete */
    struct digits_sums epoch;
    struct digits_sums all; /**< of the complete epochs */
};

/** What a rank does in the next step. */
enum digits_share { TAKES_BLOCK, HAS_ENDED_EPOCH, HAS_ENDED_DATA };

/** Where one rank is in its data. */
struct digits_place {
    enum digits_share share;
    char position[SUPPLY_POSITION_TEXT_BYTES];
};

struct digits_checkpoint {
    struct digits_progress progress;
    struct softmax model;
    struct digits_place *places; /**< one for each rank */
    int ranks;
};

/** Replaces the file: a reader finds the old checkpoint or the new one, never a part. False: errno. */
bool digits_checkpoint_save(const struct digits_checkpoint *checkpoint, const char *file);

/** Reads a checkpoint of as many ranks. False: errno, or 0 if the file is no such checkpoint. */
bool digits_checkpoint_load(struct digits_checkpoint *checkpoint, const char *file);

#endif
