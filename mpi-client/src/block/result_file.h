/** The file of one rank's result (proto/PROTOCOL.md, "Block files"): W1 to W5. */
#pragma once

#include <sys/uio.h>

#include "files/claimed_file.h"
#include "layout.h"
#include "files/options.h"
#include "pair/pair.h"
#include "block/schema.h"

struct result_file {
    struct claimed_file file;
    struct named_path unsealed; /**< its name while it is written */
    struct named_path sealed;
    struct link *link; /**< of a rank elsewhere: the file is memory, and Spark's executor gets it; or NULL */
    struct link_result of_link;
    struct mapped_file_header header; /**< as far as the file has it, except version and sealed */
};

#define RESULT_FILE_NONE ((struct result_file){.file = CLAIMED_FILE_NONE})

/**
 * W1 and W2: claims and fills the file of that result. of_pair: the rank's pair; NULL: the rank has none. The struct
 * must not move afterwards. SUPPLY_OK, or what supply__claim() returns, or _ARGUMENT (a result of that name is sealed).
 */
supply_status_t supply__result_file_create(struct result_file *result, const struct settings *settings,
                                           const struct pair *of_pair, const char *name, const struct schema *schema,
                                           struct failure *failure);

/**
 * W3: writes the pieces of a block after the blocks that are there. Fills in the rest of its notification, which the
 * first piece begins with. SUPPLY_OK, or _NO_SPACE, _SYSTEM.
 */
supply_status_t supply__result_file_write(struct result_file *result, struct notification *notification,
                                          struct iovec *pieces, int count, struct failure *failure);

/** W4. SUPPLY_OK: only supply__result_file_close() may follow. Else _SYSTEM, or as supply__link_keep(). */
supply_status_t supply__result_file_seal(struct result_file *result, struct failure *failure);

/** W5. False and errno: the reason could not be written. */
bool supply__result_file_abort(struct result_file *result, const char *reason);

/** Drops the lock, if it is held, and frees everything. The file stays. */
void supply__result_file_close(struct result_file *result);

/** The same in a forked child: the lock stays the parent's. */
void supply__result_file_abandon(struct result_file *result);
