/**
 * The numbers of a round (offers, grants, counts), and copies of values, column by column. Offers and grants of other
 * ranks are not trusted: what is to arrive is checked against the slot. Its caller has the exchange's lock.
 */
#include "round.h"

#include <stdlib.h>
#include <string.h>

/* Elements come in random order. While one is copied, memory of the one AHEAD of it is fetched. */
enum { AHEAD = 16, CACHE_LINE = 64 };

/* Asks for the offset of a later value, and for the beginning of one whose offset was asked for before. */
static inline void round_prefetch(const struct pick *pick, uint32_t column, uint32_t i) {
    if (i + 2 * AHEAD < pick->count) {
        const struct source_row *later = &pick->rows[i + 2 * AHEAD];
        const supply_column_t *of = &later->columns[column];
        if (of->offsets != NULL) __builtin_prefetch(&of->offsets[later->row]);
    }
    if (i + AHEAD >= pick->count) return;
    const struct source_row *at = &pick->rows[i + AHEAD];
    const supply_column_t *of = &at->columns[column];
    if (of->offsets == NULL) return;
    const uint32_t begin = (uint32_t)SHARED_READ(of->offsets[at->row]);
    if ((uint64_t)begin + CACHE_LINE > of->data_bytes) return;
    __builtin_prefetch((const uint8_t *)of->data + begin);
    __builtin_prefetch((const uint8_t *)of->data + begin + CACHE_LINE - 1);
}

void exchange_pack_lengths(const struct pick *pick, uint32_t column, int32_t *to) {
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        to[i] = (int32_t)exchange_value_bytes(&from->columns[column], from->row);
    }
}

static bool round_pack_values(const struct pick *pick, uint32_t column, const int32_t *lengths, uint8_t *to) {
    bool is_whole = true;
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        round_prefetch(pick, column, i);
        const uint32_t bytes = (uint32_t)lengths[i];
        const supply_column_t *of = &from->columns[column];
        const bool is_same = exchange_value_bytes(of, from->row) == bytes;
        const uint8_t *value = is_same ? exchange_value(of, from->row, bytes) : NULL;
        if (value != NULL && bytes > 0) memcpy(to, value, bytes);
        if (value == NULL) memset(to, 0, bytes);
        is_whole &= value != NULL;
        to += bytes;
    }
    return is_whole;
}

static inline void round_fetch_line(struct ahead *ahead) {
    while (ahead->at >= ahead->at_end && ahead->piece < ahead->end) {
        const struct piece *piece = ahead->piece;
        ahead->at = (const uint8_t *)piece->held->columns[ahead->next].data + piece->row * ahead->width;
        ahead->at_end = ahead->at + piece->count * ahead->width;
        if (++ahead->next < ahead->column_end) continue;
        ahead->next = ahead->column;
        ahead->piece++;
    }
    if (ahead->at >= ahead->at_end) return;
    __builtin_prefetch(ahead->at);
    ahead->at += CACHE_LINE;
}

/* With constants each copy is a move or two. A line of the next columns is fetched for eight values of these. */
static inline void round_pack_fixed(const struct pick *pick, uint32_t column, uint32_t count, size_t width,
                                    struct ahead *ahead, uint8_t *const *to) {
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        if (i % (8 / count) == 0) round_fetch_line(ahead);
        for (uint32_t k = 0; k < count; k++)
            memcpy(to[k] + i * width, (const uint8_t *)from->columns[column + k].data + from->row * width, width);
    }
}

/* Columns of a width that is frequent, each with its own code. */
static void round_pack_columns(const struct pick *pick, uint32_t column, uint32_t count, size_t width,
                               struct ahead *ahead, uint8_t *const *to) {
    if (count == TOGETHER && width == 8)
        round_pack_fixed(pick, column, TOGETHER, 8, ahead, to);
    else if (count == TOGETHER)
        round_pack_fixed(pick, column, TOGETHER, 4, ahead, to);
    else if (width == 8)
        round_pack_fixed(pick, column, 1, 8, ahead, to);
    else if (width == 4)
        round_pack_fixed(pick, column, 1, 4, ahead, to);
    else if (width == 2)
        round_pack_fixed(pick, column, 1, 2, ahead, to);
    else if (width == 1)
        round_pack_fixed(pick, column, 1, 1, ahead, to);
    else
        round_pack_fixed(pick, column, 1, width, ahead, to);
}

static void round_pack_bits(const struct pick *pick, uint32_t column, uint8_t *to) {
    for (uint32_t i = 0; i < pick->count; i++) {
        const struct source_row *from = &pick->rows[i];
        const uint8_t *bits = from->columns[column].data;
        to[i] = bits[from->row / 8] >> from->row % 8 & 1;
    }
}

/* Bytes of each value. 0: the buffer has no values of fixed width, or they are bits. */
static size_t round_width(const struct columns *columns, const struct wire_buffer *buffer) {
    const struct column_plan *plan = &columns->plans[buffer->column];
    const bool is_fixed =
        buffer->kind == WIRE_DATA && !exchange_is_variable(plan) && plan->format.layout != FORMAT_BITS;
    return is_fixed ? plan->format.bytes : 0;
}

uint32_t exchange_pack_count(const struct columns *columns, uint32_t index) {
    const size_t width = round_width(columns, &columns->buffers[index]);
    if ((width != 4 && width != 8) || index + TOGETHER > columns->buffer_count) return 1;
    for (uint32_t i = 1; i < TOGETHER; i++)
        if (round_width(columns, &columns->buffers[index + i]) != width) return 1;
    return TOGETHER;
}

struct ahead exchange_ahead(const struct columns *columns, const struct gathered_window *window, uint32_t index) {
    while (index < columns->buffer_count && round_width(columns, &columns->buffers[index]) == 0) index++;
    if (index == columns->buffer_count) return (struct ahead){0};
    const uint32_t column = columns->buffers[index].column;
    return (struct ahead){.piece = window->pieces,
                          .end = window->pieces + window->piece_count,
                          .column = column,
                          .column_end = column + exchange_pack_count(columns, index),
                          .next = column,
                          .width = round_width(columns, &columns->buffers[index])};
}

bool exchange_pack(const struct columns *columns, const struct wire_buffer *buffer, uint32_t count,
                   const struct pick *pick, const int32_t *lengths, struct ahead *ahead, uint8_t *const *to) {
    const struct column_plan *plan = &columns->plans[buffer->column];
    if (buffer->kind == WIRE_VALIDITY)
        for (uint32_t i = 0; i < pick->count; i++)
            to[0][i] = !exchange_is_null(&pick->rows[i].columns[buffer->column], pick->rows[i].row);
    else if (buffer->kind == WIRE_LENGTHS)
        memcpy(to[0], lengths, pick->count * sizeof *lengths);
    else if (exchange_is_variable(plan))
        return round_pack_values(pick, buffer->column, lengths, to[0]);
    else if (plan->format.layout == FORMAT_BITS)
        round_pack_bits(pick, buffer->column, to[0]);
    else
        round_pack_columns(pick, buffer->column, count, plan->format.bytes, ahead, to);
    return true;
}

supply_status_t exchange_round_init(struct round *round, uint32_t rank, uint32_t ranks, size_t capacity,
                                    struct failure *failure) {
    *round = (struct round){
        .rank = rank,
        .ranks = ranks,
        .capacity = capacity,
        .begins = calloc(ranks, sizeof *round->begins),
        .counts = calloc(ranks, sizeof *round->counts),
        .awaited = calloc(ranks, sizeof *round->awaited),
        .grants = calloc(ranks, sizeof *round->grants),
        .grants_in = calloc(ranks, sizeof *round->grants_in),
    };
    if (round->begins != NULL && round->counts != NULL && round->awaited != NULL && round->grants != NULL &&
        round->grants_in != NULL)
        return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

supply_status_t exchange_round_set_columns(struct round *round, const struct columns *columns,
                                           struct failure *failure) {
    round->width = (uint32_t)(exchange_offer_bytes(columns->variable_count) / sizeof(uint64_t));
    const size_t count = (size_t)round->ranks * round->width;
    round->offers = calloc(count, sizeof *round->offers);
    round->offers_in = calloc(count, sizeof *round->offers_in);
    if (round->offers != NULL && round->offers_in != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

void exchange_round_free(struct round *round) {
    free(round->begins);
    free(round->counts);
    free(round->awaited);
    free(round->offers);
    free(round->offers_in);
    free(round->grants);
    free(round->grants_in);
    *round = (struct round){0};
}

void exchange_round_begin_window(struct round *round, const struct destinations *destinations, uint64_t elements,
                                 bool is_equal) {
    round->number = 0;
    round->parts = 1;
    round->is_equal = is_equal;
    round->quota = elements / round->ranks;
    for (uint32_t rank = 0, begin = 0; rank < round->ranks; begin = destinations->ends[rank++]) {
        round->begins[rank] = begin;
        /* In the first round each rank offers all that it has. */
        round->grants_in[rank].next = UINT64_MAX;
    }
}

void exchange_round_offer(struct round *round, const struct destinations *destinations, bool has_failed) {
    uint64_t left = has_failed;
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint32_t of_rank = destinations != NULL ? destinations->ends[rank] - round->begins[rank] : 0;
        const uint64_t taken = round->grants_in[rank].next;
        round->counts[rank] = taken < of_rank ? (uint32_t)taken : of_rank;
        left += of_rank - round->counts[rank];
    }
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        uint64_t *offer = exchange_offer(round->offers, round, rank);
        memset(offer, 0, round->width * sizeof *offer);
        offer[OFFER_ELEMENTS] = round->counts[rank];
        offer[OFFER_LEFT] = left;
    }
}

uint64_t exchange_offered_bytes(const uint64_t *offer, const struct columns *columns) {
    uint64_t bytes = offer[OFFER_ELEMENTS] * columns->fixed_bytes;
    if (offer[OFFER_ELEMENTS] > UINT32_MAX) return UINT64_MAX;
    for (uint32_t i = 0; i < columns->variable_count; i++) {
        if (offer[OFFER_BYTES + i] > INT32_MAX) return UINT64_MAX;
        bytes += offer[OFFER_BYTES + i];
    }
    return bytes;
}

uint64_t exchange_round_offered(const struct round *round, const struct columns *columns) {
    uint64_t bytes = 0;
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint64_t offered = exchange_offered_bytes(exchange_offer(round->offers_in, round, rank), columns);
        if (offered == UINT64_MAX) return UINT64_MAX;
        bytes += offered;
    }
    return bytes;
}

/* How many of those elements this rank takes, if it takes them in that many rounds. */
static uint64_t round_part(const struct round *round, uint64_t elements, uint64_t quota, uint64_t parts) {
    if (parts <= 1) return elements;
    const uint64_t all = round->is_equal ? quota : elements, part = (all + parts - 1) / parts;
    return part < elements ? part : elements;
}

/* Of all elements, `taken` are taken, from each rank in proportion to what it has: how many of the first ones. */
static uint64_t round_share(uint64_t first, uint64_t taken, uint64_t elements) {
    __extension__ typedef unsigned __int128 product;
    return elements > 0 ? (uint64_t)((product)first * taken / elements) : 0;
}

/* Elements of the window that come from that rank in later rounds. */
static uint64_t round_left(struct round *round, uint32_t rank) {
    const uint64_t offered = exchange_offer(round->offers_in, round, rank)[OFFER_ELEMENTS];
    if (round->number == 0 && round->parts == 1) round->awaited[rank] = offered;
    return round->awaited[rank] > offered ? round->awaited[rank] - offered : 0;
}

/* What is left of the quota after this round. */
static uint64_t round_quota_left(const struct round *round) {
    return round->quota - (round->quota + round->parts - 1) / round->parts;
}

void exchange_round_grant(struct round *round, uint64_t verdict) {
    uint64_t all = 0, all_left = 0, before = 0, left_before = 0;
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        all_left += round_left(round, rank);
        all += round->awaited[rank];
    }
    const uint64_t less = round_part(round, all, round->quota, 2 * round->parts);
    const uint64_t next = round_part(round, all_left, round_quota_left(round), round->parts - 1);
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        const uint64_t end = before + round->awaited[rank], left_end = left_before + round_left(round, rank);
        round->grants[rank] = (struct grant){
            .verdict = verdict,
            .less = round_share(end, less, all) - round_share(before, less, all),
            .next = round_share(left_end, next, all_left) - round_share(left_before, next, all_left),
        };
        before = end;
        left_before = left_end;
    }
}

uint64_t exchange_round_decide(struct round *round) {
    uint64_t verdict = GRANT_FITS;
    for (uint32_t rank = 0; rank < round->ranks; rank++)
        if (round->grants_in[rank].verdict > verdict) verdict = round->grants_in[rank].verdict;
    for (uint32_t rank = 0; rank < round->ranks && verdict == GRANT_LESS; rank++)
        round->grants_in[rank].next = round->grants_in[rank].less;
    if (verdict == GRANT_LESS) round->parts *= 2;
    return verdict;
}

uint32_t exchange_round_advance(struct round *round, const struct destinations *destinations) {
    uint32_t left = 0;
    for (uint32_t rank = 0; rank < round->ranks; rank++) {
        round->begins[rank] += round->counts[rank];
        left += destinations->ends[rank] - round->begins[rank];
    }
    return left;
}

void exchange_round_end(struct round *round) {
    for (uint32_t rank = 0; rank < round->ranks; rank++) round->awaited[rank] = round_left(round, rank);
    round->quota = round_quota_left(round);
    if (round->parts > 1) round->parts--;
    round->number++;
}

bool exchange_round_is_last(const struct round *round) {
    for (uint32_t rank = 0; rank < round->ranks; rank++)
        if (exchange_offer(round->offers_in, round, rank)[OFFER_LEFT] > 0) return false;
    return true;
}
