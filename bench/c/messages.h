#ifndef MESSAGES_H
#define MESSAGES_H

/** Names the program in every message. */
void messages_from(const char *program);

/** Prints one line on stderr and ends the program with status 1. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
