/* What exchange.pml and levels.pml share: how ranks begin operations together, fail and end. */
#ifndef FAULTS
#define FAULTS 0            /* times that a rank fails or dies; in exchange.pml also that it waits for Spark, or comes too late */
#endif
#ifndef FIND
#define FIND 0              /* a mistake, or a good end for which an assertion fails */
#endif
#define IS(mistake) (FIND == mistake)
#define WHEN(condition, action) if :: condition -> action :: else fi
#define NONE 255
mtype = { RUNNING, DONE, FAILED, DIED, LIMIT };     /* how a rank ends */
mtype outcome[RANKS], kind[RANKS];
byte begun[RANKS], cause[RANKS], ended_at[RANKS], faults;
bool is_gone[RANKS], has_lost;
hidden byte i, j, k, n;     /* in one step */
inline leave(how) { outcome[me] = how; is_gone[me] = true; ended_at[me] = begun[me]; goto over }
inline begin(operation) {
    begun[me]++; kind[me] = operation;
    for (i : 0 .. RANKS - 1) { assert(begun[i] != begun[me] || kind[i] == operation) }
}
/* All have ended alike, unless one has died or stalled. */
inline check_together() {
    for (i : 0 .. RANKS - 1) {
        assert(!IS(outcome[i]) && (outcome[i] == DONE || faults));
        assert(has_lost || (outcome[i] == outcome[0] && cause[i] == cause[0] && ended_at[i] == ended_at[0]))
    }
    i = 0
}
