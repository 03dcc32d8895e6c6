/** Ranks from the environment that a launcher sets for its processes. */
#ifndef SUPPLY_LAUNCHER_H
#define SUPPLY_LAUNCHER_H

/** The rank in MPI_COMM_WORLD; -1: no launcher has set it. supply_local_rank() is the same for the local rank. */
int supply_launcher_rank(void);

#endif
