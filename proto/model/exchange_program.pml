/* The program of a rank, and the positions that it saves (exchange.md, *Positions*). */
#define FRONT SLOT_OF(released[me])
#define HAS_SAVED(rank) is_saved[rank]
#define HAS_TAKEN(rank) ONE(consumed[rank].got, i)
#define MAY_SAVE (run_number + 1 < RUNS)
#define IS_TO_SAVE (MAY_SAVE && !is_saved[me] && (!STEPS || (consumed[me].epoch == step_epoch && taken[me] == step)))
/* The first element of the block in front. */
inline take_element() {
    i = 0; do :: !ONE(FRONT.elements, i) -> i++ :: else -> break od;
    assert(!SOME(HAS_TAKEN));
    taken[me]++; FRONT.first_element++; FRONT.elements = FRONT.elements & ~(1 << i);
    consumed[me].got = consumed[me].got | (1 << i); consumed[me].window = FRONT.window; consumed[me].elements = FRONT.first_element;
    WHEN(FRONT.elements == 0, FRONT.first_element = 0; FRONT.window = 0; released[me]++)
}
/* As exchange_positions_find(). Windows below FINISHED are over, as far as this rank knows. With `all` the windows that all ranks name
 * are the same, so one that gives this rank nothing stays in front of it. */
#define FINISHED (consumed[me].epoch < epoch[me] -> windows[me * (EPOCHS + 1) + consumed[me].epoch] : number[me])
#define GOT(window) received[AT(consumed[me].epoch, window)]
#define IS_COMPLETE(window) ((window) < FINISHED && (HASH || GOT(window) || IS(EMPTY_IS_CONSUMED)))
#define FORGETS (IS(FORGETS_POSITION) && !taken[me])
inline save() {
    j = consumed[me].epoch; k = (FORGETS -> 0 : consumed[me].window); n = (FORGETS -> 0 : consumed[me].elements);
    do
    :: IS_COMPLETE(k) && n == GOT(k) -> n = WHOLE
    :: n == WHOLE && IS_COMPLETE(k + 1) && GOT(k + 1) == 0 -> k++
    :: else -> break
    od;
    WHEN(IS(PLAIN_BEFORE_END) && epoch[me] > j && k + 1 == FINISHED && n == WHOLE, j++; k = 0; n = 0);
    saved[me].window = k; saved[me].elements = n; saved[me].got = consumed[me].got;
    saved[me].at = (j < EPOCHS -> begins[AT(j, k)] : EPOCHS * MOST);
    saved[me].epoch = j + (IS(EMPTY_IS_IN_NEXT_EPOCH) && k > 0 && saved[me].at == j * MOST + count[me]);
    is_saved[me] = true; is_crashed = ALL(HAS_SAVED)
}
inline consume(until) {
    atomic {
        do
        :: d_step { IS_TO_SAVE -> save() }
        :: d_step { released[me] < published[me] && !FRONT.is_end -> take_element() }
        :: d_step { released[me] < published[me] && FRONT.is_end && !(STEPS && IS_TO_SAVE) -> FRONT.is_end = false; FRONT.window = 0;
            released[me]++; consumed[me].epoch++; consumed[me].window = 0; consumed[me].elements = 0; taken[me] = 0 }
        :: until -> break
        od
    }
}
