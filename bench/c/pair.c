#include "pair.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

_Noreturn void die_of(supply_t *supply) {
    char text[1024];
    snprintf(text, sizeof text, "%s", supply_error(supply));
    supply_close(supply);
    die("%s", text);
}

supply_t *open_pair(const char *local_rank) {
    supply_options_t options;
    supply_options_init(&options);
    options.rank = options.local_rank = atoi(local_rank);
    supply_t *supply;
    if (supply_open(&supply, &options) != SUPPLY_OK) die_of(supply);
    return supply;
}

supply_column_t column_named(supply_t *supply, const supply_block_t *block, const char *name) {
    supply_column_t column;
    const int index = supply_column_index(supply, name);
    if (index < 0 || supply_column(supply, block, index, &column) != SUPPLY_OK) die_of(supply);
    return column;
}

const void *value_of(const supply_column_t *column, uint32_t index, size_t *bytes) {
    const void *address;
    if (supply_value(column, index, &address, bytes) != SUPPLY_OK) die("element %u cannot be read", index);
    return address;
}
