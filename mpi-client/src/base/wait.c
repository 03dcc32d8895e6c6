/**
 * Waits for what only polls can find. Without a lock, in the thread that waits. Signal handlers may shorten a pause,
 * never a wait.
 */
#include "base/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>

#include "base/clock.h"

/* Processes that are ready answer sooner. Until then a poll only yields the core. */
#define WAIT_SPIN_NANOSECONDS 1000000
#define PAUSE_SECONDS 50e-6
/* The longer a wait is, the less it matters when it ends: later pauses are this part of it, so that many ranks that
 * wait for one leave it the cores. */
#define PAUSE_PART 32
#define PAUSE_NANOSECONDS_MAX 10000000

struct wait supply__wait_begin_slow(struct wait_limit limit, double seconds) {
    const int64_t now = supply__clock_now();
    return (struct wait){.interruption = limit.interruption,
                         .end = supply__clock_add(now, limit.seconds),
                         .part_end = INT64_MAX,
                         .polled = now,
                         .since = now,
                         .pause = supply__clock_add(0, seconds),
                         .fd = -1};
}

struct wait supply__wait_begin(struct wait_limit limit) {
    struct wait wait = supply__wait_begin_slow(limit, PAUSE_SECONDS);
    wait.spin = WAIT_SPIN_NANOSECONDS;
    return wait;
}

/* False: errno. */
static bool sleep_until_readable(int fd, int64_t nanoseconds) {
    const struct timespec limit = {.tv_sec = nanoseconds > 0 ? nanoseconds / NANOSECONDS : 0,
                                   .tv_nsec = nanoseconds > 0 ? nanoseconds % NANOSECONDS : 0};
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return ppoll(&poller, fd >= 0, &limit, NULL) >= 0 || errno == EINTR;
}

static bool pause_once(const struct wait *wait) {
    const int64_t now = supply__clock_now();
    if (now - wait->since < wait->spin) {
        sched_yield();
        return true;
    }
    const int64_t left = wait->end - now;
    int64_t pause = (now - wait->since) / PAUSE_PART;
    if (pause > PAUSE_NANOSECONDS_MAX) pause = PAUSE_NANOSECONDS_MAX;
    if (pause < wait->pause) pause = wait->pause;
    return sleep_until_readable(wait->fd, left < pause ? left : pause);
}

supply_status_t supply__wait_more(struct wait *wait) {
    if (wait->polled >= wait->end) return SUPPLY_ERROR_TIMEOUT;
    if (wait->polled >= wait->part_end) return SUPPLY_AGAIN;
    if (supply__is_interrupted(&wait->interruption)) return SUPPLY_INTERRUPTED;
    if (!pause_once(wait)) return SUPPLY_ERROR_SYSTEM;
    wait->polled = supply__clock_now();
    return SUPPLY_OK;
}

void supply__wait_progressed(struct wait *wait) { wait->since = wait->polled = supply__clock_now(); }

void supply__sleep(double seconds) { sleep_until_readable(-1, (int64_t)(seconds * NANOSECONDS)); }
