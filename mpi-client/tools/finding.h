/** What supply-doctor finds: a line a check, with the fix. */
#ifndef FINDING_H
#define FINDING_H

#include <stdbool.h>
#include <stdio.h>

enum finding_status { FINDING_OK, FINDING_WARNING, FINDING_FAILED, FINDING_SKIPPED };

/** Where findings go to, and how many were no good. */
struct findings {
    FILE *stream;
    bool json;
    unsigned warnings;
    unsigned failed;
    bool incomplete; /**< one could not be told: out of memory */
};

/** Tells one. fix: what to do; NULL where there is nothing to do, or the text says it already. */
__attribute__((format(printf, 5, 6))) void finding(struct findings *findings, enum finding_status status,
                                                   const char *check, const char *fix, const char *format, ...);

/**
 * Tells those that another program has written into a file: STATUS, CHECK, TEXT and FIX, a line each, separated by
 * tabs. False and errno: the file can not be read. A line that is none is told as a failure.
 */
bool findings_of_file(struct findings *findings, const char *file);

#endif
