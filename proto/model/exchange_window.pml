/* What a rank does with its window: gather, draw, grant, pack or copy, finish. */

#define BLOCK_BITS (((1 << BLOCK) - 1) << (me * PER_RANK + released_blocks[me] * BLOCK))
#define IS_IN_RING(owner, number) ((number) / BLOCK == released_blocks[owner])

/* The window before may still be under way: it uses what is copied. */
inline release_oldest() {
#ifndef MUTATION_NOTHING_IS_COPIED
    copied[me] = copied[me] | ((mine[me] | gathered[me]) & BLOCK_BITS);
#endif
    released_blocks[me]++
}

/* Spark writes the next block at once when the one in the ring is released. */
inline gather_element() {
    m = gathered[me] | BIT(me, element[me]);
    if
    :: element[me] == epoch[me] * MOST + count[me] ->
#ifdef MUTATION_GATHERS_PAST_THE_END
        if
        :: epoch[me] + 1 < EPOCHS && element[me] == MOST -> epoch[me]++
        :: else -> has_ended[me] = true; is_closed[me] = true
        fi
#else
        has_ended[me] = true; is_closed[me] = true
#endif
    :: element[me] < epoch[me] * MOST + count[me] && BYTES(m) > WINDOW -> is_closed[me] = true
    :: element[me] < epoch[me] * MOST + count[me] && BYTES(m) <= WINDOW && !IS_IN_RING(me, element[me]) -> release_oldest()
    :: else ->
        gathered[me] = m;
        element[me]++;
        is_closed[me] = (BYTES(m) >= WINDOW)
    fi;
    m = 0
}

#ifdef MUTATION_THE_RING_MUST_HOLD_THE_WINDOW
#define CAN_GATHER (!is_closed[me] && (IS_IN_RING(me, element[me]) || element[me] == epoch[me] * MOST + count[me] || \
    BYTES(gathered[me] | BIT(me, element[me])) > WINDOW))
#else
#define CAN_GATHER (!is_closed[me])
#endif

/* Blocks are released when no element of them is needed. */
inline release_blocks() {
    copied[me] = copied[me] & (mine[me] | gathered[me]);
    do
    :: element[me] / BLOCK > released_blocks[me] && ((mine[me] | gathered[me]) & ~copied[me] & BLOCK_BITS) == 0 ->
        released_blocks[me]++
    :: else -> break
    od
}

/* With `all` the order is drawn, so any order stands for it: this one gives equal quotas, and the rest to the ranks from (window mod
 * ranks) on. */
#if HASH == 2
#define DESTINATION(bit) to = 0
#elif HASH == 1
#define DESTINATION(bit) to = ONE(keys, bit)
#else
#define DESTINATION(bit) to = (number[me] + dealt + from) % RANKS
#endif

/* How many elements each rank contributes: a multiple of the ranks, unless the window is the last one; or one for each rank that got
 * none of the parts before. */
inline level() {
    do
    :: i < RANKS -> counts[i] = SAID(i).elements; i++
    :: else -> break
    od;
    i = 0;
#ifndef MUTATION_WINDOWS_ARE_NOT_LEVELLED
    room = (HASH || is_last || dealt + total < RANKS -> 0 : (dealt -> dealt + total - RANKS : total % RANKS));
#endif
    do
    :: room > 0 && counts[i] > 0 -> counts[i]--; room--; i = (i + 1) % RANKS
    :: room > 0 && counts[i] == 0 -> i = (i + 1) % RANKS
    :: else -> break
    od;
    i = 0;
    do
    :: i < me -> from = from + counts[i]; i++
    :: else -> break
    od
}

/* The gathered window becomes the one that is exchanged; `draw` gives each of its elements a rank. The next one begins with what is
 * left out. */
inline adopt_and_draw() {
    is_part = HAS_PARTS && dealt + total < RANKS && ended < RANKS;
    is_last = (ended == RANKS && (dealt == 0 || dealt + total <= RANKS));
    has_parts = is_part || dealt > 0;
    level();
    if
    :: dealt == 0 -> begin[AT(me, epoch[me], number[me])] = element[me] - COUNT(gathered[me])
    :: else
    fi;
    i = COUNT(gathered[me]) - counts[me];
    mine[me] = gathered[me];
    gathered[me] = ((1 << i) - 1) << (me * PER_RANK + element[me] - i);
    mine[me] = mine[me] & ~gathered[me];
    has_ended[me] = has_ended[me] && BYTES(gathered[me]) < WINDOW;
    is_closed[me] = has_ended[me] || BYTES(gathered[me]) >= WINDOW;
    round[me] = 0;
    parts = 1;
    i = me * PER_RANK;
    do
    :: i < (me + 1) * PER_RANK ->
        if
        :: !ONE(mine[me], i) || has_failed[me]
        :: ONE(mine[me], i) && !has_failed[me] ->
            DESTINATION(i);
            drawn[to] = drawn[to] | (1 << i);
            from++
        fi;
        i++
    :: else -> break
    od;
    dealt = (is_part -> dealt + total : 0);
    i = 0;
    do
    :: i < RANKS -> counts[i] = 0; i++
    :: else -> break
    od;
    from = 0; to = 0; i = 0
}

#if RANKS == 2
#define LEFT_FOR(rank) ((mine[0] | mine[1]) & drawn[rank])
#else
#define LEFT_FOR(rank) ((mine[0] | mine[1] | mine[2]) & drawn[rank])
#endif

/* The first of `parts` equal parts of what is left for this rank: with `all`, of what is left for every rank. */
inline grant() {
    d_step {
        from = COUNT(LEFT_FOR(me));
        i = 0;
        do
        :: !HASH && i < RANKS -> from = (COUNT(LEFT_FOR(i)) < from -> COUNT(LEFT_FOR(i)) : from); i++
        :: else -> break
        od;
        room = (parts == 1 -> COUNT(LEFT_FOR(me)) : (from + parts - 1) / parts);
        m = 0;
        i = 0;
        do
        :: i < BITS && room > 0 && ONE(LEFT_FOR(me), i) -> m = m | (1 << i); room--; i++
        :: i < BITS && room > 0 && !ONE(LEFT_FOR(me), i) -> i++
        :: else -> break
        od;
        granted[me] = m;
        is_whole[me] = BYTES(m) <= SLOT;
        from = 0; room = 0; m = 0; i = 0
    }
}

/* The elements that are read must be in the ring, or copied. */
inline check_held(elements) {
    i = 0;
    do
    :: i < PER_RANK ->
        assert(!((elements) & BIT(me, i)) || IS_IN_RING(me, i) || (copied[me] & BIT(me, i)));
        i++
    :: else -> break
    od;
    i = 0
}

inline pack() {
    d_step {
        m = 0;
        i = 0;
        do
        :: i < RANKS ->
#ifdef MUTATION_THE_GRANT_IS_IGNORED
            m = m | (mine[me] & drawn[i]);
#else
            m = m | (mine[me] & granted[i]);
#endif
            i++
        :: else -> break
        od;
        sent[me] = m;
        is_left[me] = has_failed[me] || (mine[me] & ~m);
        check_held(m & ~drawn[me]);
        m = 0
    }
}

/* One rank after the other, when it has said where. A slot that is not its receiver's next one must not be touched. */
inline copy_to_neighbours() {
    sent[me] = 0;
    to = 0;
    do
    :: to < RANKS ->
#ifndef MUTATION_A_RANK_COPIES_BEFORE_ITS_NEIGHBOUR_HAS_PLACED
        wait_for(HAS_BEGUN(to));
#endif
        d_step {
            m = mine[me] & granted[to];
            check_held(m);
            assert(is_placed[to]);
            arrived[to] = arrived[to] | m;
            sent[me] = sent[me] | m;
            m = 0;
            to++
        }
    :: else -> break
    od;
    is_left[me] = has_failed[me] || (mine[me] & ~sent[me]);
    to = 0
}

#ifdef MUTATION_ROUNDS_ARE_A_RANKS_OWN
#define IS_LEFT(rank) ((rank) == me && is_left[rank])
#else
#define IS_LEFT(rank) is_left[rank]
#endif
#if RANKS == 2
#define SENT_TO(rank) ((sent[0] | sent[1]) & drawn[rank])
#else
#define SENT_TO(rank) ((sent[0] | sent[1] | sent[2]) & drawn[rank])
#endif
/* What the run before has consumed of this window. */
#ifdef MUTATION_CONSUMED_ELEMENTS_COME_AGAIN
#define IS_CONSUMED false
#else
#define IS_CONSUMED (epoch[me] == resume[me].epoch && number[me] == resume[me].window && from < resume[me].elements)
#endif

inline finish() {
    d_step {
#if NEIGHBOURS
        m = arrived[me];
        arrived[me] = 0;
        is_placed[me] = false;
#else
        check_held(sent[me] & drawn[me]);
        m = SENT_TO(me);
#endif
        room = BYTES(m);
        assert(room <= SLOT);
        room = 0;
#ifdef WITNESS_ROUNDS
        assert(round[me] == 0);
#endif
        /* Of a window in parts, the slot keeps an element until all ranks have one. */
        kept[me] = kept[me] | m;
        m = (is_part -> 0 : kept[me]);
        kept[me] = kept[me] & ~m;
        /* Programs that need each other in each step never wait for different windows. */
        assert(HASH || is_last || is_part || failures || COUNT(m) == (has_parts -> 1 : COUNT(SENT_TO(0))));
        from = received[AT(me, epoch[me], number[me])];
        received[AT(me, epoch[me], number[me])] = from + COUNT(m);
        i = 0;
        do
        :: m && IS_CONSUMED -> from = from + ONE(m, i); m = m & ~(1 << i); i++
        :: else -> break
        od;
        if
        :: m != 0 -> publish(m, number[me], from, false)
        :: else
        fi;
        mine[me] = mine[me] & ~sent[me];
        has_rounds[me] = SOME(IS_LEFT);
#ifdef MUTATION_ONE_ROUND
        mine[me] = 0;
        has_rounds[me] = false;
#endif
        release_blocks();
        round[me]++;
        parts = (parts > 1 -> parts - 1 : 1);
        number[me] = number[me] + (!has_rounds[me] && !is_part);
        from = 0; m = 0; i = 0
    }
}

inline publish(set, of_window, first, ends) {
    assert(published[me] - released[me] < SLOTS);
    SLOT_OF(me, published[me]).elements = set;
    SLOT_OF(me, published[me]).epoch = epoch[me];
    SLOT_OF(me, published[me]).window = of_window;
    SLOT_OF(me, published[me]).first_element = first;
    SLOT_OF(me, published[me]).is_end = ends;
    published[me]++
}

inline end_epoch() {
    d_step {
        publish(0, 0, 0, true);
        windows[me * EPOCHS + epoch[me]] = number[me];
        ended_at[me] = begun[me];
        epoch[me]++;
        number[me] = 0;
        is_last = false;
        is_closed[me] = false;
        has_ended[me] = false;
        if
        :: epoch[me] < EPOCHS -> element[me] = epoch[me] * MOST; begin[AT(me, epoch[me], 0)] = element[me]
        :: else
        fi;
        release_blocks()
    };
    if
    :: epoch[me] == EPOCHS -> leave(DONE)
    :: else
    fi
}
