/**
 * Heartbeats of a command, in a thread of their own, whose lock covers only its end; and what a signal handler writes
 * when a routine crashes.
 */
#include "progress.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "command_line.h"

#define PERIOD_SECONDS 0.5
/* For a routine that asks whether it was cancelled. */
#define BEATS_AFTER_SIGNAL 4

static bool wait_until_stopped(struct heartbeat *heartbeat) {
    const int64_t time = supply__clock_after(PERIOD_SECONDS);
    const struct timespec next = {.tv_sec = time / NANOSECONDS, .tv_nsec = time % NANOSECONDS};
    pthread_mutex_lock(&heartbeat->lock);
    if (!heartbeat->stop) pthread_cond_timedwait(&heartbeat->stopped, &heartbeat->lock, &next);
    const bool stop = heartbeat->stop;
    pthread_mutex_unlock(&heartbeat->lock);
    return stop;
}

static json_t *progress_describe(const struct progress *progress) {
    const uint64_t step = atomic_load(&progress->step), of = atomic_load(&progress->of);
    return json_pack("{s:f, s:I, s:I}", "progress", of == 0 ? 0 : (double)step / (double)of, "step", (json_int_t)step,
                     "of", (json_int_t)of);
}

/* A routine that does not ask would run on. */
static void progress_end_by_signal(const struct channel *channel) {
    channel_remove(channel);
    signal(interruption_signal(), SIG_DFL);
    raise(interruption_signal());
}

static void *beat(void *context) {
    struct heartbeat *heartbeat = context;
    for (int after_signal = 0; !wait_until_stopped(heartbeat);) {
        const bool is_heard = channel_send(heartbeat->channel, progress_describe(heartbeat->progress), NULL, 0) &&
                              !channel_is_closed(heartbeat->channel);
        if (!is_heard || interruption_signal() != 0) atomic_store(&heartbeat->progress->is_cancelled, true);
        if (interruption_signal() != 0 && ++after_signal > BEATS_AFTER_SIGNAL)
            progress_end_by_signal(heartbeat->channel);
    }
    return NULL;
}

void heartbeat_start(struct heartbeat *heartbeat, struct progress *progress, struct channel *channel) {
    *heartbeat = (struct heartbeat){.progress = progress, .channel = channel};
    pthread_mutex_init(&heartbeat->lock, NULL);
    /* The other clock can be set. */
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&heartbeat->stopped, &monotonic);
    heartbeat->is_running = pthread_create(&heartbeat->thread, NULL, beat, heartbeat) == 0;
}

void heartbeat_stop(struct heartbeat *heartbeat) {
    if (!heartbeat->is_running) return;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->stop = true;
    pthread_cond_signal(&heartbeat->stopped);
    pthread_mutex_unlock(&heartbeat->lock);
    pthread_join(heartbeat->thread, NULL);
}

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
static char exit_line[1024];
static size_t exit_bytes;
static volatile int report_to = -1;
/* A routine may have used up its own stack. */
static char stack[1 << 16];

static void progress_report(int number) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].signal == number && report_to >= 0) {
            const ssize_t ignored = write(report_to, faults[i].line, faults[i].bytes);
            (void)ignored;
        }
    /* SA_RESETHAND: now with its default effect, which mpirun reports. */
    raise(number);
}

/* A routine may end the whole program, and so may a library that it calls. */
static void report_exit(void) {
    if (report_to < 0) return;
    const ssize_t ignored = write(report_to, exit_line, exit_bytes);
    (void)ignored;
}

void crash_install(void) {
    atexit(report_exit);
    struct sigaction action = {.sa_handler = progress_report,
                               .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK)};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigaction(faults[i].signal, &action, NULL);
}

void crash_report_to(int connection, const char *text) {
    report_to = -1;
    if (text == NULL) return;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        faults[i].bytes = (size_t)snprintf(faults[i].line, sizeof faults[i].line,
                                           "{\"ended\":true,\"error\":\"%s signal: %s\"}\n", text, faults[i].name);
    exit_bytes = (size_t)snprintf(exit_line, sizeof exit_line, "{\"ended\":true,\"error\":\"%s exit()\"}\n", text);
    report_to = connection;
}
