/** Reads pids.max and pids.current of control groups, and RLIMIT_NPROC with the tasks of this user in /proc. */
#include "thread_limit.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/memory_limit.h"

/* Both versions have the same files. */
static const struct control_groups versions[] = {{"cgroup2", ""}, {"cgroup", "pids"}};

uint64_t thread_limit_left(const struct thread_limit *limit) {
    return !limit->limited ? UINT64_MAX : limit->limit > limit->used ? limit->limit - limit->used : 0;
}

static void thread_limit_apply(struct thread_limit *limit, const struct thread_limit *found) {
    if (thread_limit_left(found) < thread_limit_left(limit)) *limit = *found;
}

static void thread_limit_apply_group(void *limit, const char *folder) {
    struct thread_limit found = {.limited = true};
    if (!supply__control_group_number(folder, "pids.max", &found.limit)) return;
    supply__control_group_number(folder, "pids.current", &found.used);
    snprintf(found.place, sizeof found.place, "%s", folder);
    thread_limit_apply(limit, &found);
}

/* A folder has a link for each of its folders, and two more: .. and . */
static uint64_t threads_of(const char *process) {
    char path[300];
    struct stat tasks;
    snprintf(path, sizeof path, "/proc/%s/task", process);
    return stat(path, &tasks) == 0 && tasks.st_uid == getuid() && tasks.st_nlink > 2 ? tasks.st_nlink - 2 : 0;
}

static void apply_user(struct thread_limit *limit) {
    struct rlimit of_user;
    /* The kernel does not limit root. */
    if (getuid() == 0 || getrlimit(RLIMIT_NPROC, &of_user) != 0 || of_user.rlim_cur == RLIM_INFINITY) return;
    struct thread_limit found = {.limited = true, .limit = of_user.rlim_cur};
    DIR *processes = opendir("/proc");
    if (processes == NULL) return;
    for (const struct dirent *entry; (entry = readdir(processes)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') found.used += threads_of(entry->d_name);
    closedir(processes);
    thread_limit_apply(limit, &found);
}

void thread_limit_read(struct thread_limit *limit, const char *root) {
    *limit = (struct thread_limit){0};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        supply__control_groups_visit(&versions[i], root, thread_limit_apply_group, limit);
    if (*root == '\0') apply_user(limit);
}
