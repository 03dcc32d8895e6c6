/* The program around the example at the head of supply.h. */
#include <stdio.h>
#include <stdlib.h>

#include "supply.h"

static size_t trained;

static void die(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static void train(const int32_t *labels, size_t count) {
    if (labels != NULL) trained += count;
}

int main(void) {
#include "supply.h.inc"
    printf("%zu elements\n", trained);
    return 0;
}
