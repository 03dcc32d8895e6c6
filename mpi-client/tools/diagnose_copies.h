/** The check of supply-doctor whether MPI's ranks of a node may copy from each other's memory. */
#ifndef DIAGNOSE_COPIES_H
#define DIAGNOSE_COPIES_H

#include "diagnosis.h"

/** Tries process_vm_readv() between two processes, as Open MPI and MPICH do for large messages. */
void diagnose_copies(struct diagnosis *diagnosis);

#endif
