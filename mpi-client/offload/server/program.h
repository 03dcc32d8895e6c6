/** The Spark program whose matrices the ranks hold: one at a time. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** id: random, of one attachment; "": none is attached. name: as its user knows it. */
struct program {
    char id[64];
    char name[256];
    int64_t last_command; /**< of the monotonic clock */
};

/** Whether a command is of the attached program. False: text says whose the ranks are. */
bool program_sends(struct program *program, const json_t *command, char *text);

/**
 * Whether the program of a command may attach: it has an id ("program"), and no other program is attached, or it takes
 * the ranks over ("take_over"). False: text says why not.
 */
bool program_may_attach(const struct program *program, const json_t *command, char *text);

/** Attaches the program of a command, with its "name". */
void program_attach(struct program *program, const json_t *command);

#endif
