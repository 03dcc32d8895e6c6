/* The program around the example at the head of supply.h. */
#include <stdio.h>
#include <stdlib.h>

#include "supply_datum.h"

static size_t trained;

static void die(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static void train(const void *data, size_t bytes, int32_t label) {
    if (data != NULL && bytes > 0 && label >= 0) trained++;
}

int main(void) {
#include "supply.h.inc"
    printf("%zu elements\n", trained);
    return 0;
}
