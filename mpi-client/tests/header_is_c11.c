/* supply.h compiles alone, as plain C11 without extensions. */
#include <supply.h>

int header_is_c11(void);

int header_is_c11(void) { return supply_status_name(SUPPLY_OK) != NULL; }
