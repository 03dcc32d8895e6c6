/* A rank: its filler, with the steps that it takes with the others; how it fails; and its program, between the calls of supply_next(). */
#define IS_NEIGHBOUR(rank) ((rank) / NODE == me / NODE)
#define HAS_BEGUN(rank) (begun[rank] >= begun[me])
#define HAS_PLACED(rank) (placed[rank] == placed[me] || !IS_NEIGHBOUR(rank) || IS(COPIES_BEFORE_PLACE))
#define HAS_COPIED(rank) (ONE(copied[me], rank) || !IS_NEIGHBOUR(rank) || IS(ARRIVES_BEFORE_COPY))
#define HAS_BUFFERS(rank) ((rank) == me || !is_freed[rank])
#define IS_STALLED(rank) is_stalled[rank]
#define IS_GONE_BUT_ME(rank) ((rank) == me || is_gone[rank])
#define IS_LOST(has_done, rank) (is_gone[rank] && !has_done(rank))
#define WAIT_FOR(has_done) wait_for(ALL(has_done), IS_LOST(has_done, 0) || IS_LOST(has_done, 1) || IS_LOST(has_done, RANKS - 1))
#define COLLECTIVE(operation, tell, hear) \
    atomic { may_stop(); d_step { begin(operation); tell } }; \
    atomic { WAIT_FOR(HAS_BEGUN); d_step { hear } }
/* A rank that has failed continues until it can tell the others; one that stalls, when they have left. */
inline may_stop() {
    if
    :: faults < FAULTS -> faults++; has_failed = true; WHEN(IS(LEAVES), cause[me] = me; leave(FAILED))
    :: faults < FAULTS -> faults++; has_lost = true; leave(DIED)
    :: faults < FAULTS && !SOME(IS_STALLED) ->
        faults++; has_lost = true; is_stalled[me] = true; ALL(IS_GONE_BUT_ME); is_stalled[me] = false
    :: true
    fi
}
inline wait_for(others, lost) {
    if
    :: (others) -> assert(ALL(HAS_BUFFERS))
    :: !(others) && (lost) -> leave(DIED)
    :: timeout -> assert(SOME(IS_STALLED)); is_freed[me] = IS(FREES_BUFFERS); leave(LIMIT)
    fi
}
/* gather: the ring of the pair holds one element. Spark writes the next one when it is released. If it is needed, it is copied. */
#define ENDS (epoch[me] * MOST + (epoch[me] < EPOCHS -> count[me] : 0))
#define SEES_END (!IS(GATHERS_PAST_END) || epoch[me] + 1 >= EPOCHS || count[me] < MOST)
#define BIT(element) (1 << (me * PER_RANK + (element)))
#define NEEDED ((gathered | mine[me]) & BIT(ring))
inline gather() {
    do
    :: is_closed -> break
    :: !is_closed && element == ENDS -> has_ended = SEES_END; is_closed = has_ended; epoch[me] = epoch[me] + !has_ended
    :: else ->
        m = gathered | BIT(element);
        if
        :: BYTES(m) > WINDOW -> is_closed = true
        :: BYTES(m) <= WINDOW && element == ring -> gathered = m; element++; is_closed = (BYTES(m) >= WINDOW)
        :: BYTES(m) <= WINDOW && element > ring && NEEDED && IS(RING_HOLDS_WINDOW) -> break
        :: else -> private = private | (IS(NOTHING_IS_COPIED) -> 0 : NEEDED); ring++
        fi
    od
}
inline say() {
    SAID(me).epoch = epoch[me]; SAID(me).window = number[me]; SAID(me).elements = (has_rounds -> 0 : COUNT(gathered));
    SAID(me).has_ended = has_ended; SAID(me).has_failed = has_failed; SAID(me).is_not_ready = is_not_ready
}
inline hear() {
    failed = NONE; total = 0; ended = 0; j = 0;
    for (i : 0 .. RANKS - 1) {
        failed = (SAID(i).has_failed && failed == NONE -> i : failed);
        total = total + SAID(i).elements; ended = ended + SAID(i).has_ended;
        j = j || (SAID(i).is_not_ready && (i == me || !IS(OWN_WAIT)))
    }
    for (i : 0 .. RANKS - 1) { assert(failed != NONE || (SAID(i).epoch == epoch[me] && SAID(i).window == number[me])) }
    is_not_ready = j
}
/* level: elements are left out until all ranks get equally many, unless the window is the last one; or until there is one for each rank
 * that got none of the parts before. draw: any order stands for a random one. This one gives the rest to ranks from (window) on. */
#define SURPLUS (HASH || is_last || dealt + total < RANKS -> 0 : (dealt -> dealt + total - RANKS : total % RANKS))
#define DESTINATION (HASH == 2 -> 0 : (HASH == 1 -> ONE(keys, i) : (number[me] + dealt + n) % RANKS))
inline begin_window() {
    is_part = !HASH && dealt + total < RANKS && ended < RANKS && !IS(NO_PARTS);
    is_last = ended == RANKS && (dealt == 0 || dealt + total <= RANKS);
    WHEN(dealt == 0, begins[AT(epoch[me], number[me])] = element - COUNT(gathered));
    for (i : 0 .. RANKS - 1) { counts[i] = SAID(i).elements }
    k = (IS(NOT_LEVELLED) -> 0 : SURPLUS); i = 0;
    do :: k > 0 -> j = (counts[i] > 0); k = k - j; counts[i] = counts[i] - j; i = (i + 1) % RANKS :: else -> n = 0; break od;
    for (i : 0 .. RANKS - 1) { n = n + (i < me -> counts[i] : 0) }
    k = counts[me];
    for (i : me * PER_RANK .. me * PER_RANK + PER_RANK - 1) {
        j = DESTINATION;
        WHEN(k > 0 && ONE(gathered, i), drawn[j] = drawn[j] | (1 << i); mine[me] = mine[me] | (1 << i); n++; k--)
    }
    gathered = gathered & ~mine[me]; is_closed = has_ended; quota = total / RANKS; parts = 1; offers = FITS
}
/* offer: all that a rank has for the others, or what they have granted. */
#define TAKES_ALL (offers == FITS || (offers == LESS && grant[i] == FITS && IS(OWN_GRANT)))
inline offer() {
    m = 0;
    for (i : 0 .. RANKS - 1) { m = m | (mine[me] & drawn[i] & (TAKES_ALL -> mine[me] : (offers == LESS -> less[i] : next[i]))) }
    offered[me] = (has_failed -> 0 : m); is_left[me] = mine[me] != offered[me] || has_failed
}
/* grant: one of so many pieces of a set, from each rank in proportion to what it has. With `all`, a piece of what every rank gets. */
inline take(piece, set, pieces, equal) {
    j = COUNT(set); n = 0; piece = 0;
    k = (pieces <= 1 -> j : ((HASH -> j : equal) + pieces - 1) / (pieces)); k = (k < j -> k : j);
    for (i : 0 .. BITS - 1) { WHEN(ONE(set, i), piece = piece | (((n + 1) * k / j > n * k / j) << i); n++) }
}
#define QUOTA_LEFT (quota - (quota + parts - 1) / parts)
#define IS_LESS(rank) (grant[rank] == LESS)
#define IS_NOTHING(rank) (grant[rank] == NOTHING)
inline say_grants() {
    m = UNION(mine) & drawn[me];
    take(less[me], m, 2 * parts, quota); m = m & ~UNION(offered); take(next[me], m, parts - 1, QUOTA_LEFT);
    m = UNION(offered) & drawn[me]; grant[me] = (has_failed -> NOTHING : (BYTES(m) <= SLOT || IS(GRANT_IS_IGNORED) -> FITS : LESS))
}
/* copy: what is read must be in the ring of the pair, or copied. The neighbours write into a slot that the program has released. */
inline place() {
    for (i : 0 .. PER_RANK - 1) { assert(HAS_SLOT && (!(offered[me] & BIT(i)) || i == ring || (private & BIT(i)))) }
    placed[me]++; copied[me] = 0; arrived[me] = 0
}
inline copy() {
    for (i : 0 .. RANKS - 1) {
        assert(placed[i] == placed[me] || !IS_NEIGHBOUR(i));
        copied[i] = copied[i] | IS_NEIGHBOUR(i) << me; arrived[i] = arrived[i] | (IS_NEIGHBOUR(i) -> offered[me] & drawn[i] : 0)
    }
    mine[me] = mine[me] & ~offered[me]; private = private & (mine[me] | gathered); ring = ring + (element > ring && !NEEDED)
}
inline publish(set, first, ends) {
    SLOT_OF(published[me]).elements = set; SLOT_OF(published[me]).first_element = first; SLOT_OF(published[me]).is_end = ends;
    SLOT_OF(published[me]).window = number[me]; published[me]++
}
/* With `all`, programs that need each other in each step never wait for different windows. What the run before has consumed is dropped. */
#define RECEIVED received[AT(epoch[me], number[me])]
#define IS_CONSUMED (epoch[me] == consumed[me].epoch && number[me] == consumed[me].window && n < consumed[me].elements)
inline finish() {
    m = arrived[me]; has_rounds = false;
    for (i : 0 .. RANKS - 1) {
        m = m | (IS_NEIGHBOUR(i) -> 0 : offered[i] & drawn[me]);
        has_rounds = has_rounds || (is_left[i] && (i == me || !IS(OWN_ROUNDS)) && !IS(ONE_ROUND))
    }
    assert(BYTES(m) <= SLOT && !(kept && m));
    assert(!(IS(ROUNDS) && parts > 1) && !(IS(PARTS) && is_part) && !(IS(NOTHING_ARRIVES) && is_last && !HASH && !m));
    kept = kept | m; m = (is_part -> 0 : kept); kept = kept & ~m;
    assert(HASH || is_last || is_part || faults || COUNT(m) == (dealt -> 1 : COUNT((UNION(offered) & drawn[0]))));
    n = RECEIVED; RECEIVED = n + COUNT(m);
    for (i : 0 .. BITS - 1) { WHEN(ONE(m, i) && IS_CONSUMED && !IS(COMES_AGAIN), m = m & ~(1 << i); n++) }
    WHEN(m != 0, publish(m, n, false));
    mine[me] = (IS(ONE_ROUND) -> 0 : mine[me]); arrived[me] = 0;
    quota = QUOTA_LEFT; parts = parts - (parts > 1); offers = NEXT; dealt = (is_part -> dealt + total : 0);
    number[me] = number[me] + (!has_rounds && !is_part)
}
inline end_epoch() {
    consume(HAS_SLOT);
    publish(0, 0, true); windows[me * (EPOCHS + 1) + epoch[me]] = number[me];
    epoch[me]++; number[me] = 0; has_ended = false; is_closed = false; is_last = false;
    element = epoch[me] * MOST; ring = element; begins[AT(epoch[me], 0)] = element
}
/* Without grants if all know that there is space: with `all` and fixed widths. If a rank has no space, all take half: with `all` no rank
 * receives more in a round than the others. */
#define HAS_GRANTS (HASH || has_rounds || total / RANKS + 1 > SLOT || (large && !IS(GRANT_IS_LEFT_OUT)))
inline exchange() {
    do
    ::  COLLECTIVE(STEP_OFFER, offer(), skip);
        WHEN(!HAS_GRANTS, break);
        COLLECTIVE(STEP_GRANT, say_grants(), offers = (SOME(IS_NOTHING) -> NOTHING : (SOME(IS_LESS) -> LESS : FITS)));
        WHEN(offers != LESS, break);
        parts = 2 * parts; assert(parts <= 2 * BITS)
    od;
    if
    :: offers == NOTHING -> has_rounds = true
    :: else ->
        atomic { may_stop(); d_step { place() } };
        atomic { WAIT_FOR(HAS_PLACED); d_step { copy() } };
        WHEN(NODE < RANKS, COLLECTIVE(STEP_MOVE, skip, skip));
        atomic { WAIT_FOR(HAS_COPIED); d_step { finish() } };
        WHEN(is_last && !has_rounds && !has_failed, atomic { end_epoch() })
    fi
}
#define IS_OVER (IS(ENDS_ALONE) -> has_ended && gathered == 0 : total == 0 && dealt == 0)
proctype Rank(byte me) {
    byte element = consumed[me].at, ring = consumed[me].at, failed, total, ended, parts, dealt, quota, counts[RANKS];
    int gathered, kept, private;
    bool is_closed, has_ended, has_failed, has_rounds, is_not_ready, is_last, is_part;
    mtype offers;
    {
        do
        ::  consume(HAS_SLOT || IS(SLOT_IS_REUSED));
            if
            :: has_rounds
            :: !has_rounds && faults < FAULTS -> faults++; is_not_ready = true
            :: !has_rounds -> d_step { gather(); m = 0 }; is_closed
            fi;
            COLLECTIVE(STEP_AGREE, say(), hear());
            atomic { WHEN(failed != NONE, cause[me] = failed; leave(FAILED)) };
            if
            :: is_not_ready -> is_not_ready = false
            :: !is_not_ready && !has_rounds && IS_OVER -> atomic { WHEN(epoch[me] == EPOCHS, leave(DONE)); end_epoch() }
            :: else -> WHEN(!has_rounds, d_step { begin_window() }); exchange()
            fi
        od;
over:   consume(outcome[me] != DONE || released[me] == published[me])
    } unless { is_crashed }
}
