/** The mathematics of a softmax classifier, without MPI and Spark. */
#include "softmax.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define PIXEL_SCALE (1.0 / 16)

static int likeliest(const double *scores) {
    int best = 0;
    for (int c = 1; c < SOFTMAX_CLASSES; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

void softmax_add(const struct softmax *model, const uint8_t pixels[SOFTMAX_PIXELS], int label,
                 struct softmax_sums *sums) {
    double inputs[SOFTMAX_PIXELS + 1];
    for (int p = 0; p < SOFTMAX_PIXELS; p++) inputs[p] = pixels[p] * PIXEL_SCALE;
    inputs[SOFTMAX_PIXELS] = 1;

    double scores[SOFTMAX_CLASSES] = {0};
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        for (int i = 0; i <= SOFTMAX_PIXELS; i++) scores[c] += model->weights[c][i] * inputs[i];

    /* Against the highest score, so that no exponential overflows. */
    const int best = likeliest(scores);
    double sum = 0;
    for (int c = 0; c < SOFTMAX_CLASSES; c++) sum += exp(scores[c] - scores[best]);
    for (int c = 0; c < SOFTMAX_CLASSES; c++) {
        double error = exp(scores[c] - scores[best]) / sum - (c == label);
        for (int i = 0; i <= SOFTMAX_PIXELS; i++) sums->gradient[c][i] += error * inputs[i];
    }
    sums->loss += log(sum) - (scores[label] - scores[best]);
    sums->correct += best == label;
    sums->elements += 1;
}

void softmax_descend(struct softmax *model, const struct softmax_sums *sums, double learning_rate) {
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        for (int i = 0; i <= SOFTMAX_PIXELS; i++)
            model->weights[c][i] -= learning_rate * sums->gradient[c][i] / sums->elements;
}

void softmax_write(const struct softmax *model, FILE *stream) {
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        for (int i = 0; i <= SOFTMAX_PIXELS; i++)
            fprintf(stream, "%.17g%c", model->weights[c][i], i < SOFTMAX_PIXELS ? ' ' : '\n');
}

bool softmax_read(struct softmax *model, FILE *stream) {
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        for (int i = 0; i <= SOFTMAX_PIXELS; i++)
            if (fscanf(stream, "%lf", &model->weights[c][i]) != 1) return false;
    errno = 0;
    char more;
    return fscanf(stream, " %c", &more) == EOF && !ferror(stream);
}

bool softmax_save(const struct softmax *model, const char *file) {
    FILE *stream = fopen(file, "w");
    if (stream == NULL) return false;
    softmax_write(model, stream);
    bool written = !ferror(stream);
    return fclose(stream) == 0 && written;
}

bool softmax_load(struct softmax *model, const char *file) {
    FILE *stream = fopen(file, "r");
    if (stream == NULL) return false;
    errno = 0;
    const bool read = softmax_read(model, stream);
    const int error = errno;
    fclose(stream);
    errno = error;
    return read;
}
