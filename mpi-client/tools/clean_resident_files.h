/** The resident files that supply-clean removes (proto/PROTOCOL.md, "Resident files"). */
#ifndef CLEAN_RESIDENT_FILES_H
#define CLEAN_RESIDENT_FILES_H

#include "cleaning.h"
#include "config_files.h"

/**
 * Removes the pair's resident files from cleaning->resident_folder, if its rank is dead and no process reads them, and
 * prints the path of each. The pair's own files may belong to another user. Kept files stay. False: one is left that is
 * in use or cannot be removed, and standard error says why.
 */
bool clean_resident_files(const struct config_line *line, const struct cleaning *cleaning);

#endif
