/* The program around the example at the head of supply_arrow.h: exports every block. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "supply_arrow.h"

static int64_t elements;

static void die(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static void use(const struct ArrowSchema *schema, const struct ArrowArray *array) {
    if (schema->n_children == array->n_children) elements += array->length;
}

int main(void) {
    supply_t *supply;
    supply_block_t block;
    supply_status_t status;
    if (supply_open(&supply, NULL) != SUPPLY_OK) die(supply_error(supply));
    while ((status = supply_next(supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die(supply_error(supply));
        if (status == SUPPLY_END_OF_EPOCH) continue;
#include "supply_arrow.h.inc"
    }
    supply_close(supply);
    printf("%" PRId64 " elements\n", elements);
    return 0;
}
