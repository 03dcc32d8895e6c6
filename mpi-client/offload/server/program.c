#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "ranks.h"

static const char *text_in(const json_t *command, const char *name) {
    const char *text = json_string_value(json_object_get(command, name));
    return text == NULL ? "" : text;
}

bool program_sends(struct program *program, const json_t *command, char *text) {
    if (program->id[0] != '\0' && strcmp(program->id, text_in(command, "program")) == 0) {
        program->last_command = supply_clock_now();
        return true;
    }
    if (program->id[0] == '\0')
        snprintf(text, FAILURE_TEXT_BYTES, "the ranks have been detached from this program: attach to them again");
    else
        snprintf(text, FAILURE_TEXT_BYTES, "the program %s has taken the ranks over", program->name);
    return false;
}

bool program_may_attach(const struct program *program, const json_t *command, char *text) {
    const char *id = text_in(command, "program");
    if (id[0] == '\0' || strlen(id) >= sizeof program->id) {
        snprintf(text, FAILURE_TEXT_BYTES, "a program that attaches names itself");
        return false;
    }
    if (program->id[0] != '\0' && strcmp(program->id, id) != 0 &&
        !json_is_true(json_object_get(command, "take_over"))) {
        snprintf(text, FAILURE_TEXT_BYTES,
                 "the ranks hold matrices for the program %s, whose last command came %" PRId64
                 " s ago: close its Ranks, or take them over (take_over), which drops its matrices",
                 program->name, (supply_clock_now() - program->last_command) / NANOSECONDS);
        return false;
    }
    return true;
}

void program_attach(struct program *program, const json_t *command) {
    *program = (struct program){.last_command = supply_clock_now()};
    snprintf(program->id, sizeof program->id, "%s", text_in(command, "program"));
    snprintf(program->name, sizeof program->name, "%s", text_in(command, "name"));
}
