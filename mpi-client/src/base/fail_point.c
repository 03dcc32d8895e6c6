/**
 * Ends or stops this process after a step of the contract, for fault tests. Built only with SUPPLY_FAIL_POINTS. The
 * file that it reads is the test's.
 */
#include "base/fail_point.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool fail_point_read_text(const char *path, char *text, int bytes) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool got = fgets(text, bytes, file) != NULL;
    fclose(file);
    return got;
}

static bool fail_point_take(const char *path) {
    char taken[PATH_MAX];
    snprintf(taken, sizeof taken, "%s.%d", path, (int)getpid());
    return rename(path, taken) == 0;
}

void supply__fail_point(const char *step) {
    static int passed;
    const char *path = getenv("SUPPLY_FAIL_POINT");
    char text[64], wanted[8], action[8];
    int after = 0;
    if (path == NULL || !fail_point_read_text(path, text, sizeof text)) return;
    if (sscanf(text, "%7[^:]:%7[^:\n]:after=%d", wanted, action, &after) < 2 || strcmp(wanted, step) != 0) return;
    if (++passed <= after || !fail_point_take(path)) return;
    raise(strcmp(action, "stop") == 0 ? SIGSTOP : SIGKILL);
}
