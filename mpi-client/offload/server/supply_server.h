/** One rank of a supply-server: what it holds, and the commands that it carries out. */
#ifndef SUPPLY_SERVER_H
#define SUPPLY_SERVER_H

#include "agreement.h"
#include "library.h"
#include "matrices.h"
#include "program.h"
#include "progress.h"
#include "receive.h"

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
    char text[FAILURE_TEXT_BYTES];
};

/** Carries out commands until one ends the ranks, or a signal comes. */
void server_serve(struct server *server);

/** Drops all that it holds. */
void server_free(struct server *server);

#endif
