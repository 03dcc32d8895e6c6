/** Counts and sums of numbered Datums, for test programs that print them: whether each arrived exactly once. */
#pragma once

#include <mpi.h>
#include <supply_datum.h>

struct datum_sums {
    uint64_t elements, numbers, squares;
};

/** Adds the Datums of a block. The number of each is its height and its key. Another key ends the job. */
void datum_sums_add(struct datum_sums *sums, supply_t *supply, const supply_block_t *block);

/** Rank 0 prints the sums of all ranks of the communicator. Collective. Clears the sums. */
void datum_sums_print(struct datum_sums *sums, uint32_t epoch, MPI_Comm ranks);
