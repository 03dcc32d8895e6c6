#include "crash.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Prepared lines, because a handler must not format. */
struct fault {
    int signal;
    const char *name;
    char line[1024];
    size_t bytes;
};

static struct fault faults[] = {{SIGSEGV, "SIGSEGV", "", 0},
                                {SIGBUS, "SIGBUS", "", 0},
                                {SIGFPE, "SIGFPE", "", 0},
                                {SIGILL, "SIGILL", "", 0},
                                {SIGABRT, "SIGABRT", "", 0}};
static volatile int report_to = -1;
/* A routine may have used up its own stack. */
static char stack[1 << 16];

static void report(int number) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].signal == number && report_to >= 0) {
            const ssize_t ignored = write(report_to, faults[i].line, faults[i].bytes);
            (void)ignored;
        }
    /* SA_RESETHAND: now with its default effect, which mpirun reports. */
    raise(number);
}

void crash_install(void) {
    struct sigaction action = {.sa_handler = report, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK)};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigaction(faults[i].signal, &action, NULL);
}

void crash_report_to(int connection, const char *text) {
    report_to = -1;
    if (text == NULL) return;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        faults[i].bytes = (size_t)snprintf(faults[i].line, sizeof faults[i].line,
                                           "{\"ended\":true,\"error\":\"%s: %s\"}\n", text, faults[i].name);
    report_to = connection;
}
