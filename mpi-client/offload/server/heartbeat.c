#include "heartbeat.h"

#include <time.h>

#define PERIOD_NANOSECONDS 500000000L

static bool wait_until_stopped(struct heartbeat *heartbeat) {
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_nsec += PERIOD_NANOSECONDS;
    next.tv_sec += next.tv_nsec / 1000000000L;
    next.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&heartbeat->lock);
    if (!heartbeat->stop) pthread_cond_timedwait(&heartbeat->stopped, &heartbeat->lock, &next);
    const bool stop = heartbeat->stop;
    pthread_mutex_unlock(&heartbeat->lock);
    return stop;
}

static void *beat(void *context) {
    struct heartbeat *heartbeat = context;
    while (!wait_until_stopped(heartbeat)) {
        json_t *line = json_pack("{s:f}", "progress", atomic_load(&heartbeat->call->done));
        if (!channel_send(heartbeat->channel, line, NULL, 0) || channel_is_closed(heartbeat->channel))
            atomic_store(&heartbeat->call->is_cancelled, true);
    }
    return NULL;
}

bool heartbeat_start(struct heartbeat *heartbeat, struct supply_call *call, struct channel *channel) {
    *heartbeat = (struct heartbeat){.call = call, .channel = channel};
    pthread_mutex_init(&heartbeat->lock, NULL);
    pthread_cond_init(&heartbeat->stopped, NULL);
    return pthread_create(&heartbeat->thread, NULL, beat, heartbeat) == 0;
}

void heartbeat_stop(struct heartbeat *heartbeat) {
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->stop = true;
    pthread_cond_signal(&heartbeat->stopped);
    pthread_mutex_unlock(&heartbeat->lock);
    pthread_join(heartbeat->thread, NULL);
}
