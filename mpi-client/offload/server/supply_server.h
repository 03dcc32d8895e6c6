/** One rank of a supply-server: where its socket is, what it holds, and the commands that it carries out. */
#pragma once

#include "call.h"
#include "matrices.h"
#include "progress.h"
#include "ranks.h"
#include "receive.h"
#include "supply.h"

struct server {
    struct ranks ranks;
    struct channel channel;
    struct agreement agreement;
    struct program program;
    supply_options_t options;
    struct matrices matrices;
    struct libraries libraries;
    struct reception reception;
    struct progress progress;       /**< of the command that is being carried out */
    char last_id[COMMAND_ID_BYTES]; /**< of the command that was answered last, */
    json_t *last_answer;            /**< and its answer */
    bool ended;
    char text[SUPPLY_TEXT_BYTES];
};

/** Carries out commands until one ends the ranks, or a signal comes. */
void server_serve(struct server *server);

/** Drops all that it holds. */
void server_free(struct server *server);

/**
 * The path of the socket, next to the mapped file of the pair; free() it. folder: gets its folder, which is made and
 * checked as a pair's, and which the caller closes. timeout: gets the timeout of each wait in seconds, from the options
 * or the environment. NULL: text says why.
 */
char *socket_path(const supply_options_t *options, int *folder, double *timeout, char *text);
