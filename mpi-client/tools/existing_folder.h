/** The folder that is there already, of a file whose folders are made only when its rank starts. */
#ifndef EXISTING_FOLDER_H
#define EXISTING_FOLDER_H

#include <limits.h>
#include <stdbool.h>

/** The deepest folder on the way to the file that exists. path is absolute. */
void existing_folder(const char *path, char folder[PATH_MAX]);

/** Makes the path that of the folder above. False: there is none. */
bool folder_above(char *path);

#endif
