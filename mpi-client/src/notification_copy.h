/** The copy of its notification that stands at the start of each block. */
#ifndef SUPPLY_NOTIFICATION_COPY_H
#define SUPPLY_NOTIFICATION_COPY_H

#include "failure.h"
#include "layout.h"

/** SUPPLY_OK, or _CONTRACT with the first field of the copy that is not that of the notification. */
supply_status_t supply_notification_check_copy(const struct notification *notification, const struct notification *copy,
                                               struct failure *failure);

#endif
