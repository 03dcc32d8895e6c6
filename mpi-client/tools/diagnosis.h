/** The report of supply-doctor: one line for each check, with a fix; and the folders that its checks look at. */
#ifndef DIAGNOSIS_H
#define DIAGNOSIS_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

enum diagnosis_status { DIAGNOSIS_OK, DIAGNOSIS_WARNING, DIAGNOSIS_FAILED, DIAGNOSIS_SKIPPED };

/** Where the report goes, and how many checks warned or failed. */
struct diagnosis {
    FILE *stream;
    bool json;
    unsigned warnings;
    unsigned failed;
    bool incomplete; /**< a check could not be reported: out of memory */
};

/** Reports one check. fix says what to do; NULL if nothing is to do, or if the text already says it. */
__attribute__((format(printf, 5, 6))) void diagnosis_report(struct diagnosis *diagnosis, enum diagnosis_status status,
                                                            const char *check, const char *fix, const char *format,
                                                            ...);

/**
 * Reports the checks that another program has written into a file: on each line STATUS, CHECK, TEXT and FIX, separated
 * by tabs. A line of another form is reported as a failure. False and errno if the file cannot be read.
 */
bool diagnosis_report_file(struct diagnosis *diagnosis, const char *file);

/** Finds the deepest existing folder above the file. path is absolute. */
void existing_folder(const char *path, char folder[PATH_MAX]);

/** Cuts the last part off the path. False if the path is the root. */
bool parent_folder(char *path);

#endif
