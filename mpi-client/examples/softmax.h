/** Softmax regression on images of 8 × 8 pixels of 0 to 16, ten classes. */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SOFTMAX_PIXELS 64
#define SOFTMAX_CLASSES 10

/** For each class a weight for each pixel, and a bias. */
struct softmax {
    double weights[SOFTMAX_CLASSES][SOFTMAX_PIXELS + 1];
};

/** Sums over the images of a step. Doubles alone, so that sums of several ranks are added as one array. */
struct softmax_sums {
    double gradient[SOFTMAX_CLASSES][SOFTMAX_PIXELS + 1];
    double loss;     /**< cross-entropy */
    double correct;  /**< images whose likeliest class is their label */
    double elements; /**< images */
};

/** Adds one image. label: 0 to 9. */
void softmax_add(const struct softmax *model, const uint8_t pixels[SOFTMAX_PIXELS], int label,
                 struct softmax_sums *sums);

/** Goes one step against the mean gradient of the sums, which hold at least one image. */
void softmax_descend(struct softmax *model, const struct softmax_sums *sums, double learning_rate);

/** Writes the weights as text, which has every bit of them, or reads them: nothing may follow. */
void softmax_write(const struct softmax *model, FILE *stream);
bool softmax_read(struct softmax *model, FILE *stream);

/** The same with a file of their own. False: errno, or 0 if the file does not hold weights. */
bool softmax_save(const struct softmax *model, const char *file);
bool softmax_load(struct softmax *model, const char *file);

#endif
