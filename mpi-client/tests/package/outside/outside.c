/* A program of another project, which has only the installed package. */
#include <stdio.h>
#include <stdlib.h>
#include <supply.h>

int main(void) {
    supply_t *supply;
    unsetenv("SUPPLY_MAPPED_FILES");
    supply_status_t status = supply_open(&supply, NULL);
    printf("libsupply %s speaks contract %s\n", supply_version(), supply_contract_version());
    printf("%s: %s\n", supply_status_name(status), supply_error(supply));
    supply_close(supply);
    return 0;
}
