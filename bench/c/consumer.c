#include "consumer.h"

#include <inttypes.h>
#include <stdio.h>

#include "checksum.h"
#include "clock.h"
#include "memory.h"

void consumer_take(struct consumer *consumer, const void *data, size_t bytes) {
    if (consumer->elements == 0)
        printf("%s%" PRId64, consumer->rounds == 0 ? "{\"first_block\": [" : ", ", clock_nanos());
    if (consumer->rounds == 0) tally_element(&consumer->tally, data, bytes);
    consumer->sum += sum_of_words(data, bytes);
    consumer->elements++;
}

void consumer_end_round(struct consumer *consumer) {
    if (consumer->rounds++ == 0) consumer->first_sum = consumer->sum;
    consumer->differing += consumer->sum != consumer->first_sum || consumer->elements != consumer->tally.elements;
    consumer->sum = consumer->elements = 0;
}

void consumer_print(const struct consumer *consumer) {
    printf("], \"received\": ");
    tally_print(&consumer->tally);
    printf(", \"differing_epochs\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 "}\n", consumer->differing, peak_memory());
}
