#include "groups.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

/* A user's entry fits easily. If one does not, its number stands for it. */
#define ENTRY_BYTES 4096

/* A group lists all its members; this is enough for any. */
#define GROUP_BYTES_MAX (64u << 20)

const char *supply_user_text(uid_t user, char text[USER_TEXT_BYTES]) {
    char buffer[ENTRY_BYTES];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(user, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
        snprintf(text, USER_TEXT_BYTES, "%s (uid %u)", found->pw_name, (unsigned)user);
    else
        snprintf(text, USER_TEXT_BYTES, "uid %u", (unsigned)user);
    return text;
}

/* Looks up a group by its name, or its number if name is NULL. 0, with *found NULL if there is none; or an errno. */
static int look_up(const char *name, gid_t number, struct group *entry, char **buffer, struct group **found) {
    int error = ERANGE;
    for (size_t bytes = ENTRY_BYTES; error == ERANGE && bytes <= GROUP_BYTES_MAX; bytes *= 2) {
        char *grown = realloc(*buffer, bytes);
        if (grown == NULL) return ENOMEM;
        *buffer = grown;
        error =
            name ? getgrnam_r(name, entry, *buffer, bytes, found) : getgrgid_r(number, entry, *buffer, bytes, found);
    }
    return error;
}

const char *supply_group_text(gid_t group, char text[USER_TEXT_BYTES]) {
    const int error = errno;
    struct group entry, *found = NULL;
    char *buffer = NULL;
    if (look_up(NULL, group, &entry, &buffer, &found) == 0 && found != NULL)
        snprintf(text, USER_TEXT_BYTES, "%s", found->gr_name);
    else
        snprintf(text, USER_TEXT_BYTES, "%u", (unsigned)group);
    free(buffer);
    errno = error;
    return text;
}

supply_status_t supply_group_find(const char *name, const char *origin, gid_t *group, struct failure *failure) {
    struct group entry, *found = NULL;
    char *buffer = NULL;
    int error = look_up(name, NO_GROUP, &entry, &buffer, &found);
    if (error == 0 && found != NULL) *group = found->gr_gid;
    free(buffer);
    if (error == ENOMEM) return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    if (error == 0 && found != NULL) return SUPPLY_OK;

    char *end;
    errno = 0;
    unsigned long number = strtoul(name, &end, 10);
    if (*name < '0' || *name > '9' || *end != '\0' || errno != 0 || number >= NO_GROUP)
        return supply_fail(failure, SUPPLY_ERROR_CONFIG,
                           "%s: there is no group '%s' on this node: set group= (--group) to a name or number that "
                           "'getent group' knows",
                           origin, name);
    *group = (gid_t)number;
    return SUPPLY_OK;
}
