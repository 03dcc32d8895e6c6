/* What a task does for values in place (PROTOCOL.md, *Values in place*), as in supply.pair.MappedFile. */

/*
 * P2 of a block that refers to a file: finds its entry, or adds one in two steps. An entry of an attempt that died in between
 * does not hold, and is written again.
 */
inline refer() {
    if
    :: KIND(START(generation) + sequence) == BLOCK ->
        number = 0;
#ifdef MUTATION_THE_NEXT_ATTEMPT_ADDS_ITS_OWN_ENTRIES
        number = (me > 0 -> pair[generation].foreign_count : 0);
#endif
        do
        :: number < pair[generation].foreign_count && pair[generation].entry[number] != FILE_OF(position) -> number++
        :: number < pair[generation].foreign_count && pair[generation].entry[number] == FILE_OF(position) -> break
        :: number == pair[generation].foreign_count ->
            assert(number < FILES);
#ifdef MUTATION_FOREIGN_COUNT_IS_STORED_FIRST
            pair[generation].foreign_count = number + 1;
            pair[generation].entry[number] = FILE_OF(position);
#else
            pair[generation].entry[number] = FILE_OF(position);
            pair[generation].foreign_count = number + 1;
#endif
            break
        od;
        pair[generation].window_file[SLOT(sequence)] = MARK(number);
        number = 0
    :: else
    fi
}

/* R3: the block refers to an entry that holds, of the file in which its values are. */
inline check_reference() {
    assert(kind != BLOCK || (pair[me].window_file[SLOT(number)] > 0 && pair[me].window_file[SLOT(number)] <= pair[me].foreign_count));
    assert(kind != BLOCK || pair[me].entry[pair[me].window_file[SLOT(number)] - 1] == FILE_OF(MARK(number) + START(me)))
}
