/** The nearest existing folder of a file whose folders are made when its rank starts. */
#ifndef EXISTING_FOLDER_H
#define EXISTING_FOLDER_H

#include <limits.h>
#include <stdbool.h>

/** Finds the deepest existing folder above the file. path is absolute. */
void existing_folder(const char *path, char folder[PATH_MAX]);

/** Cuts the last part off the path. False if the path is the root. */
bool parent_folder(char *path);

#endif
