/** What an MPI launcher tells its processes through the environment. */
#ifndef SUPPLY_LAUNCHER_H
#define SUPPLY_LAUNCHER_H

/** The rank in MPI_COMM_WORLD, -1 where no launcher tells. supply_local_rank() is its public sibling. */
int supply_launcher_rank(void);

#endif
