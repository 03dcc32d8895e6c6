/**
 * Routines for test_ranks.py whose library has names that the server, libsupply and jansson have, too. It is compiled
 * several times, with other values of LIBRARY.
 */
#include <supply_routine.h>

/* As a header of another version names its table. */
#ifdef OTHER_HEADER
#undef supply_routines
extern const supply_routine_t supply_routines[];
#endif

double json_object(void);
double key_digest(void);
double supply_open(void);
double helper(void);

double json_object(void) { return LIBRARY; }
double key_digest(void) { return 10 + LIBRARY; }
double supply_open(void) { return 20 + LIBRARY; }
double helper(void) { return 30 + LIBRARY; }

static int names(supply_call_t *call) {
    double *values = supply_call_array(call, "values", 1, 4);
    if (values == NULL) return 1;
    values[0] = json_object();
    values[1] = key_digest();
    values[2] = supply_open();
    values[3] = helper();
    return 0;
}

const supply_routine_t supply_routines[] = {
    {"names", names, {{NULL}}, {"values"}},
    {.name = NULL},
};
