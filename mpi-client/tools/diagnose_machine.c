/**
 * Reads what the kernel says about file systems, memory, control groups and nodes, and tries a copy between two
 * processes. It changes nothing.
 */
#include "diagnose_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failure.h"
#include "files/file_space.h"
#include "files/memory_limit.h"
#include "json_text.h"
#include "thread_limit.h"

static const char more_space[] =
    "set ring= or block= smaller in mapped-files.conf, remove stale pairs (supply-clean), or enlarge the file system: "
    "mount -o remount,size=SIZE, in a container --shm-size=SIZE, on Kubernetes an emptyDir of medium Memory";

static double megabytes(uint64_t bytes) { return (double)bytes / 1e6; }

static uint64_t sum(const struct mapped_file_need *needs, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += needs[i].bytes;
    return bytes;
}

static void check_space(struct diagnosis *diagnosis, const char *folder, uint64_t needed, size_t pairs) {
    struct statvfs space;
    struct statfs type;
    if (statvfs(folder, &space) != 0 || statfs(folder, &type) != 0) {
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "space", "choose another folder", "%s: cannot be examined: %m",
                         folder);
        return;
    }
    const uint64_t available = supply__space_free(&space);
    const bool fits = needed <= available;
    char what[64] = "the file system has no limit";
    if (available != SPACE_WITHOUT_LIMIT) snprintf(what, sizeof what, "%.1f are free", megabytes(available));
    if (type.f_type != TMPFS_MAGIC && type.f_type != RAMFS_MAGIC)
        diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "space",
                         "set paths in /dev/shm, or in another tmpfs, in mapped-files.conf",
                         "%s is not on a tmpfs: the kernel also writes the mapped files to a disk", folder);
    diagnosis_report(diagnosis, fits ? DIAGNOSIS_OK : DIAGNOSIS_FAILED, "space", fits ? NULL : more_space,
                     "%s: %.1f MB are needed for %zu pair%s, and %s", folder, megabytes(needed), pairs,
                     pairs == 1 ? "" : "s", what);
}

static dev_t file_system(const char *folder) {
    struct stat entry;
    return stat(folder, &entry) == 0 ? entry.st_dev : 0;
}

/* One check for each file system. */
static void check_file_systems(struct diagnosis *diagnosis, const struct mapped_file_need *needs, size_t count) {
    char folder[PATH_MAX], other[PATH_MAX];
    for (size_t i = 0; i < count; i++) {
        existing_folder(needs[i].line->mapped_file.path, folder);
        const dev_t device = file_system(folder);
        uint64_t bytes = 0;
        size_t pairs = 0;
        bool reported = false;
        for (size_t j = 0; j < count && !reported; j++) {
            existing_folder(needs[j].line->mapped_file.path, other);
            if (file_system(other) != device) continue;
            reported = j < i;
            bytes += needs[j].bytes;
            pairs++;
        }
        if (!reported) check_space(diagnosis, folder, bytes, pairs);
    }
}

static void check_memory(struct diagnosis *diagnosis, uint64_t needed) {
    const uint64_t available = supply__memory_available("");
    if (available == UINT64_MAX) {
        diagnosis_report(diagnosis, DIAGNOSIS_SKIPPED, "memory", NULL,
                         "/proc/meminfo does not say how much is available");
        return;
    }
    const bool fits = needed <= available;
    diagnosis_report(diagnosis, fits ? DIAGNOSIS_OK : DIAGNOSIS_WARNING, "memory",
                     fits ? NULL : "set ring= or block= smaller, or stop programs that use memory",
                     "%.1f MB are needed, and %.1f are available", megabytes(needed), megabytes(available));
}

void diagnose_container(struct diagnosis *diagnosis, const struct memory_limit *limit, uint64_t needed) {
    static const char fix[] =
        "raise the container's limit, or set ring= or block= smaller: the kernel charges the pages of a mapped file to "
        "the container that touches them first, which is the rank's";
    if (!limit->limited) {
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "container", NULL, "no memory limit");
        return;
    }
    if (needed > limit->least_bytes) {
        diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "container", fix,
                         "%.1f MB are needed, and the memory limit is %.1f", megabytes(needed),
                         megabytes(limit->least_bytes));
        return;
    }
    const bool fits = needed <= supply__memory_limit_left(limit);
    diagnosis_report(diagnosis, fits ? DIAGNOSIS_OK : DIAGNOSIS_WARNING, "container", fits ? NULL : fix,
                     "%.1f MB are needed; the memory limit is %.1f, and %.1f of it are used (%s)", megabytes(needed),
                     megabytes(limit->limit_bytes), megabytes(limit->used_bytes), limit->place);
}

void diagnose_memory(struct diagnosis *diagnosis, const struct mapped_file_need *needs, size_t count) {
    check_file_systems(diagnosis, needs, count);
    check_memory(diagnosis, sum(needs, count));
    struct memory_limit limit;
    supply__memory_limit_read(&limit, "");
    diagnose_container(diagnosis, &limit, sum(needs, count));
}

/* Of a rank with PyTorch, and of an executor's JVM with its Python. */
enum { THREADS_OF_RANK = 20, THREADS_OF_EXECUTOR = 120 };

void diagnose_threads(struct diagnosis *diagnosis, const struct thread_limit *limit, size_t ranks) {
    static const char of_container[] = "start fewer ranks, or raise the limit: docker run --pids-limit, the kubelet's "
                                       "podPidsLimit, systemd's TasksMax";
    static const char of_user[] = "start fewer ranks, or raise the limit: ulimit -u, nproc in limits.conf";
    if (!limit->limited) {
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "threads", NULL, "no limit");
        return;
    }
    const uint64_t needed = THREADS_OF_EXECUTOR + THREADS_OF_RANK * ranks, left = thread_limit_left(limit);
    const enum diagnosis_status status = left < ranks    ? DIAGNOSIS_FAILED
                                         : left < needed ? DIAGNOSIS_WARNING
                                                         : DIAGNOSIS_OK;
    diagnosis_report(diagnosis, status, "threads",
                     status == DIAGNOSIS_OK ? NULL
                     : *limit->place        ? of_container
                                            : of_user,
                     "an executor and %zu rank%s with PyTorch need about %" PRIu64 "; the limit is %" PRIu64
                     ", and %" PRIu64 " are left (%s)",
                     ranks, ranks == 1 ? "" : "s", needed, limit->limit, left,
                     *limit->place ? limit->place : "ulimit -u");
}

void diagnose_temporary(struct diagnosis *diagnosis) {
    static const char fix[] =
        "set TMPDIR to a folder that this user can write, also for the executors (spark.executorEnv.TMPDIR), or mount "
        "a volume there (on Kubernetes an emptyDir). Java's is -Djava.io.tmpdir in spark.executor.extraJavaOptions";
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || *folder == '\0') folder = "/tmp";
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "temporary", NULL, "%s can be written", folder);
    else
        diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "temporary", fix,
                         "%s cannot be written (%m): Spark, Java, DataLoader workers and copies of scripts need it",
                         folder);
}

/* The memory nodes that have processors and memory, as "0" or "0-1"; empty if the kernel names none. */
static void read_nodes(const char *folder, char *list, int bytes) {
    char path[256];
    list[0] = '\0';
    snprintf(path, sizeof path, "%s/has_cpu", folder);
    FILE *file = fopen(path, "re");
    if (file == NULL) return;
    if (fgets(list, bytes, file) == NULL) list[0] = '\0';
    list[strcspn(list, "\n")] = '\0';
    fclose(file);
}

void diagnose_nodes(struct diagnosis *diagnosis, const char *folder) {
    char list[256];
    read_nodes(folder, list, sizeof list);
    if (list[0] == '\0') {
        diagnosis_report(diagnosis, DIAGNOSIS_SKIPPED, "numa", NULL, "%s does not name the memory nodes", folder);
        return;
    }
    if (strpbrk(list, ",-") == NULL) {
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "numa", NULL, "one memory node: every page is near every core");
        return;
    }
    diagnosis_report(diagnosis, DIAGNOSIS_OK, "numa", NULL,
                     "memory nodes %s: a ring lies on the node on which its rank opens the pair, so bind ranks before "
                     "that (mpirun --map-by numa --bind-to numa, srun --cpu-bind=ldoms)",
                     list);
}

static const char fix[] =
    "give the container the capability SYS_PTRACE, or tell Open MPI not to try it: set "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none (Open MPI 5: OMPI_MCA_smsc=^cma), also on the other nodes";

/* Waits to be read. Like MPI's ranks, it lets every process of its user do so. */
_Noreturn static void be_read(const int ready[2], const int end[2]) {
    char byte = 0;
    close(end[1]);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (write(ready[1], &byte, 1) != 1 || read(end[0], &byte, 1) != 0) _exit(1);
    _exit(0);
}

/* Exits with errno, or 0. A sibling of the other, as ranks are. */
_Noreturn static void read_from(pid_t other) {
    static const uint64_t value = 0x5355505059; /* has the same address there */
    uint64_t copy = 0;
    const struct iovec to = {&copy, sizeof copy}, from = {(void *)&value, sizeof value};
    const ssize_t got = process_vm_readv(other, &to, 1, &from, 1, 0);
    _exit(got == sizeof copy && copy == value ? 0 : got < 0 ? errno : EIO);
}

/* errno of a copy between two processes; 0: it is allowed. -1 and errno: it could not be tried. */
static int try_copy(void) {
    int ready[2], end[2], status = 0;
    char byte;
    if (pipe(ready) != 0) return -1;
    if (pipe(end) != 0) {
        close(ready[0]);
        close(ready[1]);
        return -1;
    }
    const pid_t other = fork();
    if (other == 0) be_read(ready, end);
    close(ready[1]);
    close(end[0]);
    const pid_t reader = other > 0 && read(ready[0], &byte, 1) == 1 ? fork() : -1;
    if (reader == 0) read_from(other);
    const int tried =
        reader > 0 && waitpid(reader, &status, 0) == reader && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    close(ready[0]);
    close(end[1]); /* the other one ends */
    if (other > 0) waitpid(other, NULL, 0);
    return tried;
}

void diagnose_copies(struct diagnosis *diagnosis) {
    const int error = try_copy();
    if (error == 0)
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "copies", NULL,
                         "processes of this user may read each other's memory, as MPI does for large messages");
    else if (error < 0)
        diagnosis_report(diagnosis, DIAGNOSIS_SKIPPED, "copies", NULL, "no processes could be started to try it: %m");
    else
        diagnosis_report(diagnosis, DIAGNOSIS_WARNING, "copies", fix,
                         "processes of this user may not read each other's memory (process_vm_readv: %s): Open MPI's "
                         "ranks of this node print 'Read -1, expected …' for large messages",
                         strerror(error));
}

/* Prints one line for each check, as text or as JSON, and counts warnings and failures. */

#define TEXT_BYTES 4096

static const char *const status_names[] = {"ok", "warning", "failed", "skipped"};

static void diagnosis_print(struct diagnosis *diagnosis, enum diagnosis_status status, const char *check,
                            const char *text, const char *fix) {
    diagnosis->warnings += status == DIAGNOSIS_WARNING;
    diagnosis->failed += status == DIAGNOSIS_FAILED;
    if (diagnosis->json) {
        json_t *object = json_pack("{s:s, s:o, s:o, s:o}", "status", status_names[status], "check", json_text(check),
                                   "text", json_text(text), "fix", fix ? json_text(fix) : json_null());
        if (!json_print_line(diagnosis->stream, object)) diagnosis->incomplete = true;
        return;
    }
    char line[TEXT_BYTES];
    supply__copy_line(line, sizeof line, text, TEXT_BYTES);
    fprintf(diagnosis->stream, "%-8s %-11s %s\n", status_names[status], check, line);
    if (fix == NULL) return;
    supply__copy_line(line, sizeof line, fix, TEXT_BYTES);
    fprintf(diagnosis->stream, "%20s fix: %s\n", "", line);
}

void diagnosis_report(struct diagnosis *diagnosis, enum diagnosis_status status, const char *check, const char *fix,
                      const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    diagnosis_print(diagnosis, status, check, text, fix);
}

static void report_line(struct diagnosis *diagnosis, char *line, const char *file) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line;
    const char *status = strsep(&rest, "\t"), *check = strsep(&rest, "\t"), *text = strsep(&rest, "\t");
    const char *fix = strsep(&rest, "\t");
    for (int i = 0; text != NULL && i <= DIAGNOSIS_SKIPPED; i++)
        if (strcmp(status, status_names[i]) == 0) {
            diagnosis_print(diagnosis, (enum diagnosis_status)i, check, text, fix != NULL && *fix != '\0' ? fix : NULL);
            return;
        }
    diagnosis_report(diagnosis, DIAGNOSIS_FAILED, "findings", NULL,
                     "%s: '%s' is not STATUS, CHECK, TEXT and FIX, separated by tabs", file, line);
}

bool diagnosis_report_file(struct diagnosis *diagnosis, const char *file) {
    FILE *stream = fopen(file, "re");
    if (stream == NULL) return false;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stream) >= 0) report_line(diagnosis, line, file);
    const bool read = !ferror(stream);
    free(line);
    fclose(stream);
    return read;
}

bool parent_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash[1] == '\0') return false;
    slash[slash == path ? 1 : 0] = '\0';
    return true;
}

void existing_folder(const char *path, char folder[PATH_MAX]) {
    struct stat entry;
    snprintf(folder, PATH_MAX, "%s", path);
    while (parent_folder(folder) && stat(folder, &entry) != 0) {
    }
}
