/** The check of supply-doctor for machines with several memory nodes (NUMA). */
#ifndef DIAGNOSE_NODES_H
#define DIAGNOSE_NODES_H

#include "diagnosis.h"

/** Where the kernel describes the memory nodes (sysfs, ABI/stable/sysfs-devices-node). */
#define NODES_FOLDER "/sys/devices/system/node"

/** Says where the pages of a ring lie on this machine, and what to do about it. folder: NODES_FOLDER. */
void diagnose_nodes(struct diagnosis *diagnosis, const char *folder);

#endif
