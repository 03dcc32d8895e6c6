/** The caches of a processor, and the ring that suits them (ring=auto). */
#ifndef SUPPLY_CACHES_H
#define SUPPLY_CACHES_H

#include <stdint.h>

/** Where the kernel describes the caches of the first processor (sysfs, ABI/testing/sysfs-devices-system-cpu). */
#define CACHES_FOLDER "/sys/devices/system/cpu/cpu0/cache"

/**
 * Bytes of a ring that is larger than the task's own cache (L2) and fits the part of the last cache (L3) that belongs
 * to two processors, the task's and the rank's, but at most all of it: 4 to 16 MiB. 0: that folder describes no such
 * cache.
 */
uint64_t supply_ring_for_caches(const char *folder);

#endif
