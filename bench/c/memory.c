#include "memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "messages.h"

/* getrusage() also counts the memory that the process had before exec(). */
uint64_t peak_memory(void) {
    FILE *status = fopen("/proc/self/status", "re");
    if (status == NULL) die("/proc/self/status: %m");
    char line[256];
    uint64_t kib = 0;
    while (kib == 0 && fgets(line, sizeof line, status) != NULL) sscanf(line, "VmHWM: %" SCNu64 " kB", &kib);
    fclose(status);
    return kib << 10;
}
