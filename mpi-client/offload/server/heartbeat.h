/** Tells Spark twice a second that a routine runs, and notices that Spark no longer waits for it. */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include "call.h"

struct heartbeat {
    struct supply_call *call;
    struct channel *channel;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool stop;
};

/** False: there is no thread. The call and the channel must live until heartbeat_stop(). */
bool heartbeat_start(struct heartbeat *heartbeat, struct supply_call *call, struct channel *channel);
void heartbeat_stop(struct heartbeat *heartbeat);

#endif
