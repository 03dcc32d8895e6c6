/**
 * The numbers of a round (offers, grants, counts), and copies of values, column by column. Offers and grants of other
 * ranks are not trusted: what is to arrive is checked against the slot. It runs in the thread that uses the handle,
 * without a lock.
 */
#include "round.h"

#include <stdlib.h>
#include <string.h>

/* Elements come in random order. While one is copied, memory of the one AHEAD of it is fetched. */
enum { AHEAD = 16, CACHE_LINE = 64 };

/* Asks for the offset of a later value, and for the beginning of one whose offset was asked for before. */
static inline void prefetch(const struct pick *pick, uint32_t column, uint32_t i) {
    if (i + 2 * AHEAD < pick->count) {
        const struct source_row *later = &pick->rows[i + 2 * AHEAD];
        const supply_column_t *of = &later->held->columns[column];
        if (of->offsets != NULL) __builtin_prefetch(&of->offsets[later->row]);
    }
    if (i + AHEAD >= pick->count) return;
    const struct source_row *at = &pick->rows[i + AHEAD];
    const supply_column_t *of = &at->held->columns[column];
    if (of->offsets == NULL) return;
    const uint32_t begin = (uint32_t)SHARED_READ(of->offsets[at->row]);
    if ((uint64_t)begin + CACHE_LINE > of->data_bytes) return;
    __builtin_prefetch((const uint8_t *)of->data + begin);
    __builtin_prefetch((const uint8_t *)of->data + begin + CACHE_LINE - 1);
}

void exchange_pack_lengths(const struct pick *pick, uint32_t column, int32_t *to) {
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        to[i] = (int32_t)exchange_value_bytes(&from->held->columns[column], from->row);
    }
}

bool exchange_pack_values(const struct pick *pick, uint32_t column, const int32_t *lengths, uint8_t *to) {
    bool is_whole = true;
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        prefetch(pick, column, i);
        const uint32_t bytes = (uint32_t)lengths[i];
        const uint8_t *value = exchange_value(&from->held->columns[column], from->row, bytes);
        if (value != NULL && bytes > 0) memcpy(to, value, bytes);
        if (value == NULL) memset(to, 0, bytes);
        is_whole &= value != NULL;
        to += bytes;
    }
    return is_whole;
}

/* With a constant width each copy is a move or two. */
static inline void pack_fixed(const struct pick *pick, uint32_t column, size_t width, uint8_t *to) {
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        memcpy(to + i * width, (const uint8_t *)from->held->columns[column].data + from->row * width, width);
    }
}

static void round_pack_bits(const struct pick *pick, uint32_t column, uint8_t *to) {
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        const uint8_t *bits = from->held->columns[column].data;
        to[i] = bits[from->row / 8] >> from->row % 8 & 1;
    }
}

void exchange_pack_data(const struct pick *pick, uint32_t column, const struct format *format, uint8_t *to) {
    if (format->layout == FORMAT_BITS) {
        round_pack_bits(pick, column, to);
        return;
    }
    switch (format->bytes) {
        case 1:
            pack_fixed(pick, column, 1, to);
            break;
        case 2:
            pack_fixed(pick, column, 2, to);
            break;
        case 4:
            pack_fixed(pick, column, 4, to);
            break;
        case 8:
            pack_fixed(pick, column, 8, to);
            break;
        default:
            pack_fixed(pick, column, format->bytes, to);
    }
}

void exchange_pack_validity(const struct pick *pick, uint32_t column, uint8_t *to) {
    for (uint32_t i = 0; i < pick->count; i++)
        to[i] = !exchange_is_null(&pick->rows[i].held->columns[column], pick->rows[i].row);
}

supply_status_t exchange_round_init(struct round *round, uint32_t rank, uint32_t ranks, size_t capacity,
                                    struct failure *failure) {
    *round = (struct round){
        .rank = rank,
        .ranks = ranks,
        .capacity = capacity,
        .begins = calloc(ranks, sizeof *round->begins),
        .bytes_left = calloc(ranks, sizeof *round->bytes_left),
        .counts = calloc(ranks, sizeof *round->counts),
        .bytes = calloc(ranks, sizeof *round->bytes),
        .offers = calloc(ranks, sizeof *round->offers),
        .offers_in = calloc(ranks, sizeof *round->offers_in),
        .grants = calloc(ranks, sizeof *round->grants),
        .grants_in = calloc(ranks, sizeof *round->grants_in),
    };
    if (round->begins != NULL && round->bytes_left != NULL && round->counts != NULL && round->bytes != NULL &&
        round->offers != NULL && round->offers_in != NULL && round->grants != NULL && round->grants_in != NULL)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

supply_status_t exchange_round_set_columns(struct round *round, const struct columns *columns,
                                           struct failure *failure) {
    round->width = COUNT_BYTES + columns->variable_count;
    const size_t count = (size_t)round->ranks * round->width;
    round->messages = calloc(count, sizeof *round->messages);
    round->messages_in = calloc(count, sizeof *round->messages_in);
    if (round->messages != NULL && round->messages_in != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

void exchange_round_free(struct round *round) {
    free(round->begins);
    free(round->bytes_left);
    free(round->counts);
    free(round->bytes);
    free(round->offers);
    free(round->offers_in);
    free(round->grants);
    free(round->grants_in);
    free(round->messages);
    free(round->messages_in);
    *round = (struct round){0};
}

void exchange_round_begin_window(struct round *round, const struct columns *columns,
                                 const struct gathered_window *window, const struct destinations *destinations) {
    round->number = 0;
    for (uint32_t rank = 0, begin = 0; rank < round->ranks; rank++) {
        const uint32_t end = destinations->ends[rank];
        uint64_t bytes = (uint64_t)(end - begin) * columns->fixed_bytes;
        if (columns->variable_count > 0) {
            bytes = 0;
            for (uint32_t i = begin; i < end; i++) bytes += window->sizes[destinations->order[i]];
        }
        round->begins[rank] = begin;
        round->bytes_left[rank] = bytes;
        begin = end;
    }
}

void exchange_round_offer_nothing(struct round *round) {
    for (uint32_t rank = 0; rank < round->ranks; rank++) round->offers[rank] = (struct offer){0};
}

void exchange_round_offer(struct round *round, const struct columns *columns, const struct gathered_window *window,
                          const struct destinations *destinations) {
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint32_t begin = round->begins[rank], end = destinations->ends[rank];
        round->offers[rank] = (struct offer){
            .bytes = round->bytes_left[rank],
            .elements = end - begin,
            .first_bytes = begin < end ? exchange_window_size(window, columns, destinations->order[begin]) : 0,
        };
    }
}

/* The first rank is another one in each round. It gets the whole slot, and an element always fits. */
void exchange_round_grant(struct round *round) {
    uint64_t space = round->capacity;
    bool is_whole = true;
    for (uint32_t i = 0; i < round->ranks; i++) {
        const uint32_t rank = (round->number + i) % round->ranks;
        const struct offer *offer = &round->offers_in[rank];
        uint64_t granted = offer->bytes < space ? offer->bytes : space;
        if (offer->elements == 0 || granted < offer->first_bytes) granted = 0;
        is_whole = is_whole && granted == offer->bytes;
        round->grants[rank].bytes = granted;
        space -= granted;
    }
    for (uint32_t rank = 0; rank < round->ranks; rank++) round->grants[rank].is_whole = is_whole;
    round->grants_one = false;
}

void exchange_round_grant_all(struct round *round) {
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        round->grants[rank] = (struct grant){.bytes = round->capacity, .is_whole = 1};
        round->grants_in[rank] = (struct grant){.bytes = round->offers[rank].bytes, .is_whole = 1};
    }
    round->grants_one = false;
}

uint64_t exchange_round_granted(const struct round *round) {
    uint64_t bytes = 0;
    for (uint32_t rank = 0; rank < round->ranks; rank++) bytes += round->grants[rank].bytes;
    return bytes;
}

void exchange_round_grant_nothing(struct round *round) {
    for (uint32_t rank = 0; rank < round->ranks; rank++) round->grants[rank] = (struct grant){0};
}

bool exchange_round_fits(const struct round *round) {
    bool fits = true;
    for (uint32_t rank = 0; rank < round->ranks; rank++) fits = fits && round->grants_in[rank].is_whole != 0;
    return fits;
}

void exchange_round_grant_one(struct round *round) {
    bool has_one = false;
    for (uint32_t i = 0; i < round->ranks; i++) {
        const uint32_t rank = (round->number + i) % round->ranks;
        const struct offer *offer = &round->offers_in[rank];
        const bool takes = !has_one && offer->elements > 0 && offer->first_bytes <= round->capacity;
        round->grants[rank] = (struct grant){.bytes = takes ? offer->first_bytes : 0};
        has_one = has_one || takes;
    }
    round->grants_one = true;
}

/* How many of the elements fit, and their bytes. */
static uint32_t count_that_fit(const struct columns *columns, const struct gathered_window *window,
                               const uint32_t *order, uint32_t count, uint64_t space, uint64_t *bytes) {
    uint32_t fitting = 0;
    *bytes = 0;
    if (columns->variable_count == 0) {
        fitting = space / columns->fixed_bytes < count ? (uint32_t)(space / columns->fixed_bytes) : count;
        *bytes = fitting * columns->fixed_bytes;
        return fitting;
    }
    while (fitting < count && window->sizes[order[fitting]] <= space - *bytes)
        *bytes += window->sizes[order[fitting++]];
    return fitting;
}

void exchange_round_select(struct round *round, const struct columns *columns, const struct gathered_window *window,
                           const struct destinations *destinations) {
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint32_t begin = round->begins[rank];
        const uint32_t left = round->offers[rank].elements > 0 ? destinations->ends[rank] - begin : 0;
        if (left > 0 && round->grants_in[rank].bytes == round->bytes_left[rank]) {
            round->counts[rank] = left;
            round->bytes[rank] = round->bytes_left[rank];
        } else {
            round->counts[rank] = count_that_fit(columns, window, destinations->order + begin, left,
                                                 round->grants_in[rank].bytes, &round->bytes[rank]);
        }
    }
}

struct pick exchange_round_pick(const struct round *round, const struct destinations *destinations, uint32_t rank) {
    return (struct pick){.rows = destinations->rows + round->begins[rank], .count = round->counts[rank]};
}

void exchange_round_count(struct round *round, const struct destinations *destinations, uint64_t failed) {
    uint64_t left = failed;
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        round->bytes_left[rank] -= round->bytes[rank];
        if (failed == 0) left += destinations->ends[rank] - round->begins[rank] - round->counts[rank];
    }
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        uint64_t *message = exchange_message(round->messages, round, rank);
        message[COUNT_ELEMENTS] = round->counts[rank];
        message[COUNT_LEFT] = left;
    }
}

bool exchange_round_check(const struct round *round, const struct columns *columns) {
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint64_t *message = exchange_message(round->messages_in, round, rank);
        const uint64_t granted = round->grants[rank].bytes;
        if (message[COUNT_ELEMENTS] > granted / columns->fixed_bytes) return false;
        uint64_t bytes = message[COUNT_ELEMENTS] * columns->fixed_bytes;
        for (uint32_t i = 0; i < columns->variable_count; i++) {
            if (message[COUNT_BYTES + i] > granted - bytes) return false;
            bytes += message[COUNT_BYTES + i];
        }
    }
    return true;
}

uint32_t exchange_round_advance(struct round *round, const struct destinations *destinations) {
    uint32_t left = 0;
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        round->begins[rank] += round->counts[rank];
        left += destinations->ends[rank] - round->begins[rank];
    }
    return left;
}

bool exchange_round_is_last(const struct round *round) {
    for (uint32_t rank = 0; rank < round->ranks; rank++)
        if (exchange_message(round->messages_in, round, rank)[COUNT_LEFT] > 0) return false;
    return true;
}

bool exchange_round_has_change(const struct round *round, uint32_t rank) {
    return exchange_message(round->messages_in, round, rank)[COUNT_LEFT] == LEFT_CHANGED;
}
