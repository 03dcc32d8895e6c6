#include "interruption.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t received;
/* -1: not installed, and poll() skips it. */
static int ends[2] = {-1, -1};

static void receive(int number) {
    int error = errno;
    received = number;
    /* If the pipe is full, it is readable already. */
    ssize_t ignored = write(ends[1], "", 1);
    (void)ignored;
    errno = error;
}

int interruption_install(void) {
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    /* Without SA_RESTART, so that a signal also ends a write that waits for a stalled reader. */
    struct sigaction action = {.sa_handler = receive};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, &action, NULL) != 0 || sigaction(SIGTERM, &action, NULL) != 0) return -1;
    action.sa_handler = SIG_IGN;
    return sigaction(SIGPIPE, &action, NULL);
}

int interruption_fd(void) { return ends[0]; }

int interruption_signal(void) { return received; }
