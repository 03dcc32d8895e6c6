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
        is_closed[me] = (BYTES(m) == WINDOW)
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

#if HASH == 2
#define DESTINATION(bit) to = 0
#elif HASH == 1
#define DESTINATION(bit) to = ONE(keys, bit)
#else
#define DESTINATION(bit) to = next[me]
#endif

/* The gathered window becomes the one that is exchanged; `draw` gives each of its elements a rank. */
inline adopt_and_draw() {
    remember();
    mine[me] = gathered[me];
    gathered[me] = 0;
    is_closed[me] = has_ended[me];
    begin_upcoming[me] = element[me];
    round[me] = 0;
    i = me * PER_RANK;
    do
    :: i < (me + 1) * PER_RANK ->
        if
        :: !ONE(mine[me], i) || has_failed[me]
        :: ONE(mine[me], i) && !has_failed[me] ->
            DESTINATION(i);
            drawn[to] = drawn[to] | (1 << i);
            next[me] = (next[me] + 1) % RANKS
        fi;
        i++
    :: else -> break
    od;
    upcoming[me]++;
    to = 0;
    i = 0
}

/* Where the upcoming window begins. */
inline remember() {
    begin[AT(me, epoch[me], upcoming[me])] = begin_upcoming[me];
    next_at[AT(me, epoch[me], upcoming[me])] = next[me]
}

/* To each rank, from (round mod ranks) on, the bytes that it offers or those that are left; it sends whole elements. */
inline grant() {
    d_step {
        granted[me] = 0;
        is_last = true;
        room = SLOT;
        from = 0;
        do
        :: from < RANKS ->
#ifdef MUTATION_ROUNDS_COUNT_FROM_THE_OPENING
            to = ((begun[me] + 1) / 4 + from) % RANKS;
#else
            to = (round[me] + from) % RANKS;
#endif
            m = 0;
            i = to * PER_RANK;
            do
            :: i < (to + 1) * PER_RANK ->
                if
                :: ONE(mine[to] & drawn[me], i) && BYTES(m | (1 << i)) <= room -> m = m | (1 << i)
                :: ONE(mine[to] & drawn[me], i) && BYTES(m | (1 << i)) > room -> break
                :: else
                fi;
                i++
            :: else -> break
            od;
            granted[me] = granted[me] | m;
            m = mine[to] & drawn[me];
            is_last = is_last && (m & ~granted[me]) == 0;
            room = room - (BYTES(m) < room -> BYTES(m) : room);
            from++
        :: else -> break
        od;
        from = 0; to = 0; room = 0; m = 0; i = 0
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
        check_held(m & ~drawn[me]);
        m = 0
    }
}

/* One rank after the other. A slot that is not its receiver's next one must not be touched. */
inline copy_to_neighbours() {
    sent[me] = 0;
    to = 0;
    do
    :: d_step { to < RANKS ->
        m = mine[me] & granted[to];
        check_held(m);
        assert(is_placed[to]);
        arrived[to] = arrived[to] | m;
        sent[me] = sent[me] | m;
        m = 0;
        to++ }
    :: else -> break
    od;
    to = 0
}

inline finish() {
    d_step {
#if NEIGHBOURS
        m = arrived[me];
        arrived[me] = 0;
        is_placed[me] = false;
#else
        check_held(sent[me] & drawn[me]);
        i = 0;
        do
        :: i < RANKS -> m = m | (sent[i] & drawn[me]); i++
        :: else -> break
        od;
#endif
        room = BYTES(m);
        assert(room <= SLOT);
        room = 0;
#ifdef WITNESS_ROUNDS
        assert(round[me] == 0);
#endif
        if
        :: m != 0 ->
            publish(m, upcoming[me] - 1, false);
            received[AT(me, epoch[me], upcoming[me] - 1)] = received[AT(me, epoch[me], upcoming[me] - 1)] + COUNT(m)
        :: else
        fi;
        mine[me] = mine[me] & ~sent[me];
#ifdef MUTATION_ONE_ROUND
        mine[me] = 0;
#endif
        release_blocks();
        round[me]++;
        finished[me] = (is_last -> upcoming[me] : upcoming[me] - 1);
        is_last = false;
        m = 0; i = 0
    }
}

inline publish(set, number, ends) {
    assert(published[me] - released[me] < SLOTS);
    SLOT_OF(me, published[me]).elements = set;
    SLOT_OF(me, published[me]).epoch = epoch[me];
    SLOT_OF(me, published[me]).window = number;
    SLOT_OF(me, published[me]).is_end = ends;
    published[me]++
}

inline end_epoch() {
    d_step {
        publish(0, 0, true);
        windows[me * EPOCHS + epoch[me]] = upcoming[me];
        ended_at[me] = begun[me];
        epoch[me]++;
        upcoming[me] = 0;
        finished[me] = 0;
        next[me] = me;
        oldest[me] = 0;
        is_closed[me] = false;
        has_ended[me] = false;
        if
        :: epoch[me] < EPOCHS -> element[me] = epoch[me] * MOST; begin_upcoming[me] = element[me]; remember()
        :: else
        fi;
        release_blocks();
        i = 0
    }
}
