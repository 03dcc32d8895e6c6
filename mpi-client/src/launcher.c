#include "launcher.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "supply.h"

static int number_from_environment(const char *const *names) {
    for (; *names != NULL; names++) {
        const char *text = getenv(*names);
        if (text == NULL || *text < '0' || *text > '9') continue;
        char *end;
        errno = 0;
        long number = strtol(text, &end, 10);
        if (*end == '\0' && errno == 0 && number <= INT_MAX) return (int)number;
    }
    return -1;
}

/* Launchers nest: torchrun or mpirun inside a Slurm job inherit Slurm's variables, which then describe the launcher's
 * own process. So the launcher nearest to the rank comes first. */

int supply_local_rank(void) {
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
                                        NULL};
    return number_from_environment(names);
}

int supply_launcher_rank(void) {
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    return number_from_environment(names);
}
