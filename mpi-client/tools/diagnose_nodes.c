#include "diagnose_nodes.h"

#include <stdio.h>
#include <string.h>

/* The memory nodes that have processors and memory, as "0" or "0-1"; empty if the kernel names none. */
static void read_nodes(const char *folder, char *list, int bytes) {
    char path[256];
    list[0] = '\0';
    snprintf(path, sizeof path, "%s/has_cpu", folder);
    FILE *file = fopen(path, "re");
    if (file == NULL) return;
    if (fgets(list, bytes, file) == NULL) list[0] = '\0';
    list[strcspn(list, "\n")] = '\0';
    fclose(file);
}

void diagnose_nodes(struct diagnosis *diagnosis, const char *folder) {
    char list[256];
    read_nodes(folder, list, sizeof list);
    if (list[0] == '\0') {
        diagnosis_report(diagnosis, DIAGNOSIS_SKIPPED, "numa", NULL, "%s does not name the memory nodes", folder);
        return;
    }
    if (strpbrk(list, ",-") == NULL) {
        diagnosis_report(diagnosis, DIAGNOSIS_OK, "numa", NULL, "one memory node: every page is near every core");
        return;
    }
    diagnosis_report(diagnosis, DIAGNOSIS_OK, "numa", NULL,
                     "memory nodes %s: a ring lies on the node on which its rank opens the pair, so bind ranks before "
                     "that (mpirun --map-by numa --bind-to numa, srun --cpu-bind=ldoms)",
                     list);
}
