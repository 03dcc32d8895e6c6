/** The socket by which Spark sends commands to a rank: a file of the user's own in the folder of the pair. */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct channel {
    int folder; /**< of the socket */
    char name[108];
    struct stat file; /**< the socket's; st_ino 0: none */
    int listening;
    double peer_seconds;  /**< in which a connected program must send a command, and read a part of its answer */
    int connection;       /**< -1: no command is being answered */
    pthread_mutex_t lock; /**< of what is written to the connection */
};

#define CHANNEL_NONE ((struct channel){.folder = -1, .listening = -1, .peer_seconds = 30, .connection = -1})

/**
 * Creates the socket in its folder, an open one, which channel_close() closes. A socket of a dead server is replaced.
 * False: *text says why.
 */
bool channel_open(struct channel *channel, int folder, const char *path, char *text, size_t text_bytes);

/**
 * Waits for the next command: one JSON object on one line. The connection stays open for the answer. NULL: a signal
 * asks this program to end. What is no command, or too long, gets an error; other users than this one and root get no
 * answer. attend: called ten times a second meanwhile, if it is not NULL.
 */
json_t *channel_next(struct channel *channel, void (*attend)(void *context), void *context);

/** Sends one line, and then `bytes` bytes. Frees the line. False: the other side has closed the connection. */
bool channel_send(struct channel *channel, json_t *line, const void *data, size_t bytes);

/** Whether the other side has closed the connection. */
bool channel_is_closed(const struct channel *channel);

/** Ends the answer. */
void channel_end_answer(struct channel *channel);

/** Removes the socket's file, unless its name refers to another one by now. */
void channel_remove(const struct channel *channel);

/** Removes the file, and closes everything. */
void channel_close(struct channel *channel);
