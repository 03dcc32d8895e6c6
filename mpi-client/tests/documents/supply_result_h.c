/* The program around the example at the head of supply_result.h: a result with the number and label of each element. */
#include <stdio.h>
#include <stdlib.h>

#include "supply_result.h"

#define ROWS_MAX 1000

static int64_t ids[ROWS_MAX];
static float scores[ROWS_MAX];
static uint32_t n;

static void die(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static void add(supply_t *supply, const supply_block_t *block) {
    supply_column_t labels;
    const int index = supply_column_index(supply, "label");
    if (index < 0 || supply_column(supply, block, index, &labels) != SUPPLY_OK) die(supply_error(supply));
    for (uint32_t i = 0; i < labels.element_count && n < ROWS_MAX; i++, n++) {
        ids[n] = n;
        scores[n] = (float)((const int32_t *)labels.data)[i];
    }
}

int main(void) {
    supply_t *supply;
    supply_block_t block;
    supply_status_t status;
    if (supply_open(&supply, NULL) != SUPPLY_OK) die(supply_error(supply));
    while ((status = supply_next(supply, &block)) != SUPPLY_END_OF_DATA) {
        if (status < 0) die(supply_error(supply));
        if (status == SUPPLY_END_OF_EPOCH) continue;
        add(supply, &block);
        supply_release(supply, &block);
    }
#include "supply_result.h.inc"
    supply_close(supply);
    printf("%u elements\n", n);
    return 0;
}
