/** The Linux control groups of this process, of version 1 or 2. */
#ifndef CONTROL_GROUPS_H
#define CONTROL_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

/** A hierarchy of groups. */
struct control_groups {
    const char *type;       /**< of its mount: "cgroup2" or "cgroup" */
    const char *controller; /**< in /proc/self/cgroup and in the mount's options; "" for version 2 */
};

/**
 * Calls visit with the folder of this process's group, and with those of its ancestors that this container can see.
 * root is the folder that holds proc and sys: "" except in tests.
 */
void supply__control_groups_visit(const struct control_groups *groups, const char *root,
                                  void (*visit)(void *context, const char *folder), void *context);

/** Reads a file of a group. False if it has no number: it does not exist, or says that there is no limit. */
bool supply__control_group_number(const char *folder, const char *file, uint64_t *number);

#endif
