/* What a resident file adds (PROTOCOL.md, *Resident files*), as in supply.block.PairResidentFile and ResidentFileWriter. */

/* Before the first block of an attempt: the file that is there, or a new one (F1). */
inline choose_file() {
    if
    :: sequence == 0 ->
        pair[generation].file_is_unsealed = false;
        d_step { pair[generation].file_published = 0; pair[generation].file_is_unsealed = true };
        writes_file = true
    :: sequence > 0 && pair[generation].file_is_sealed -> pair[generation].file_is_unsealed = false
    :: sequence > 0 && !pair[generation].file_is_sealed ->
        /* An attempt that died left the blocks of this epoch. */
        assert(sequence < EPOCH && pair[generation].file_is_unsealed);
        assert(pair[generation].file_published >= sequence);
#ifndef MUTATION_PUBLISHED_FIRST_AND_NOT_WRITTEN_AGAIN
        pair[generation].file_published = sequence;
#endif
        writes_file = true
    fi
}

/* F2: in two steps, the block and what makes it valid. */
inline write_into_file() {
    if
#ifdef MUTATION_PUBLISHED_FIRST_AND_NOT_WRITTEN_AGAIN
    :: writes_file && sequence < FILE_BLOCKS && pair[generation].file_published <= sequence ->
        pair[generation].file_published = MARK(sequence);
        pair[generation].file_values[sequence] = position
    :: else
#else
    :: writes_file && sequence < FILE_BLOCKS ->
        pair[generation].file_values[sequence] = position;
        pair[generation].file_published = MARK(sequence)
    :: else
#endif
    fi
}

/* F3, of the number that ends the first epoch: the sealed name, then without the other one. */
inline seal_file() {
    if
    :: writes_file && sequence == FILE_BLOCKS ->
        assert(pair[generation].file_published == FILE_BLOCKS);
        pair[generation].file_is_sealed = true;
        pair[generation].file_is_unsealed = false;
        writes_file = false
    :: else
    fi
}

/* The rank finds the block in the file: its slot has a header alone. */
inline read_in_file(number) {
    assert(pair[me].file_is_sealed);
    assert(pair[me].copy[SLOT(number)] == MARK(number));
    assert(pair[me].values[SLOT(number)] == 0);
    assert(pair[me].file_values[FILE_BLOCK(number)] == MARK(FILE_BLOCK(number)))
}
