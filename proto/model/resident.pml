/* What a task does for resident blocks (PROTOCOL.md, *Resident epochs*), as in supply.pair.PublishedBlocks. */

/* P2 of a number whose block lies in another slot: in two steps, the record and what makes it valid. */
inline record() {
    if
    :: sequence >= AFTER_RESIDENT ->
        pair[generation].replay_block[SLOT(sequence)] = MARK((sequence == LAST_NUMBER -> AFTER_RESIDENT : MEANT(sequence)));
        pair[generation].replay_sequence[SLOT(sequence)] = MARK(sequence)
    :: else
    fi
}

/* What an attempt finds for a number that was published before it attached. */
inline check_record(published_number) {
    assert(published_number < AFTER_RESIDENT || pair[generation].resident_count);
    assert(published_number < AFTER_RESIDENT || pair[generation].replay_sequence[SLOT(published_number)] == MARK(published_number));
    assert(published_number < AFTER_RESIDENT || pair[generation].replay_block[SLOT(published_number)] ==
        MARK((published_number == LAST_NUMBER -> AFTER_RESIDENT : MEANT(published_number))))
}

/* Of the number that ends the resident epoch. Stores the count last: a rank that reads it first never sees one without the other. */
inline seal_resident(number_after) {
    if
    :: number_after == AFTER_RESIDENT ->
#ifdef MUTATION_COUNT_IS_STORED_FIRST
        pair[generation].resident_count = RESIDENT_COUNT;
        pair[generation].resident_first = FIRST
#else
        pair[generation].resident_first = FIRST;
        pair[generation].resident_count = RESIDENT_COUNT
#endif
    :: else
    fi
}
