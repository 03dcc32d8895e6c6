/* What must hold when the processes of a run that did not crash have ended. */

/* Each element of the ended epochs has been taken once: the program asserts that it is not taken twice. */
inline check_end() {
    d_step {
        i = 0;
        m = 0;
        do
        :: i < RANKS ->
            m = m | consumed[i].got;
#ifdef WITNESS
            assert(outcome[i] != WITNESS);
#endif
#if FAILURES == 0 && DEATHS == 0 && STALLS == 0
            assert(outcome[i] == DONE);
#endif
            assert(outcome[i] == outcome[0] || DEATHS || STALLS);
            assert(cause[i] == cause[0] || DEATHS || STALLS);
            assert(outcome[i] != DONE || outcome[0] != DONE || ended_at[i] == ended_at[0]);
            i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < BITS ->
            assert(outcome[0] != DONE || DEATHS || STALLS || ONE(m, i) == (i % MOST < count[i / PER_RANK]));
            i++
        :: else -> break
        od;
        i = 0;
        m = 0
    }
}
