#include "policy.h"

#include <stdlib.h>

/* Also an empty window has a list, of which the rounds take parts. */
static bool reserve(uint32_t **list, uint32_t *capacity, uint32_t count) {
    if (*list != NULL && count <= *capacity) return true;
    free(*list);
    *list = malloc(((size_t)count + 1) * sizeof **list);
    *capacity = *list ? count : 0;
    return *list != NULL;
}

supply_status_t exchange_policy_prepare(struct destinations *destinations, const struct exchange_settings *settings,
                                        const struct columns *columns, const struct draw *draw,
                                        struct failure *failure) {
    const uint32_t count = draw->window->elements;
    if (destinations->ends == NULL) destinations->ends = calloc(draw->ranks, sizeof *destinations->ends);
    if (destinations->ends == NULL || !reserve(&destinations->order, &destinations->capacity, count) ||
        (exchange_has_key(settings) && !reserve(&destinations->scratch, &destinations->scratch_capacity, count)))
        return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory for the order of %u elements", count);
    if (columns->schema.count == 0 || !exchange_has_key(settings)) return SUPPLY_OK;
    return settings->policy == SUPPLY_EXCHANGE_HASH
               ? exchange_prepare_hash(destinations, settings, columns, draw, failure)
               : exchange_prepare_range(settings, columns, draw->range, failure);
}

void exchange_policy_draw(struct destinations *destinations, const struct exchange_settings *settings,
                          const struct draw *draw, const uint64_t *counts) {
    if (settings->policy == SUPPLY_EXCHANGE_RANGE) exchange_draw_range(destinations, draw);
    if (exchange_has_key(settings))
        exchange_group(destinations, draw);
    else
        exchange_draw_deal(destinations, settings, draw, counts);
}

void exchange_destinations_free(struct destinations *destinations) {
    free(destinations->order);
    free(destinations->ends);
    free(destinations->scratch);
    *destinations = (struct destinations){0};
}
