/** Tells Spark twice a second that a command is being carried out, and notices that Spark no longer waits for it. */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include "channel.h"
#include "progress.h"

struct heartbeat {
    struct progress *progress;
    struct channel *channel;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool is_running;
    bool stop;
};

/**
 * Without a thread there are no heartbeats, and Spark waits until its timeout. If a signal asks this program to end and
 * the command is still there some seconds later, the signal ends the program. Progress and channel must live until
 * heartbeat_stop().
 */
void heartbeat_start(struct heartbeat *heartbeat, struct progress *progress, struct channel *channel);
void heartbeat_stop(struct heartbeat *heartbeat);

#endif
