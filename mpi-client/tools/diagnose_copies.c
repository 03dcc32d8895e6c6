#include "diagnose_copies.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

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
