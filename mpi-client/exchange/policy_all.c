#include "mix.h"
#include "policy.h"

/* An order of all elements, each as probable as the others (Fisher and Yates). */
static void shuffle(uint32_t *order, uint32_t count, uint64_t state) {
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    for (uint32_t left = count; left > 1; left--) {
        const uint32_t other = exchange_random_below(&state, left), last = order[left - 1];
        order[left - 1] = order[other];
        order[other] = last;
    }
}

/* Every order is as probable as the others. So the first elements may as well be those for rank 0, and so on. */
void exchange_draw_all(struct destinations *destinations, const struct exchange_settings *settings,
                       const struct draw *draw) {
    const uint32_t count = draw->window->elements;
    const uint32_t numbers[] = {draw->window->epoch, draw->number, draw->rank};
    shuffle(destinations->order, count, exchange_hash(numbers, sizeof numbers, settings->seed));
    const uint32_t moving =
        (uint32_t)(((uint64_t)count * settings->fraction + EXCHANGE_FRACTION_UNIT / 2) / EXCHANGE_FRACTION_UNIT);
    uint32_t end = 0;
    for (uint32_t rank = 0; rank < draw->ranks; rank++) {
        const uint32_t turn = (rank + draw->ranks - draw->next) % draw->ranks;
        end += moving / draw->ranks + (turn < moving % draw->ranks);
        if (rank == draw->rank) end += count - moving;
        destinations->ends[rank] = end;
    }
}
