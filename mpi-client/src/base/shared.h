/** Reads of memory that another process may write to meanwhile. */
#ifndef SUPPLY_SHARED_H
#define SUPPLY_SHARED_H

/** Reads that place once, so what was checked is what is used. The compiler may not read it a second time. */
#define SHARED_READ(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)

#endif
