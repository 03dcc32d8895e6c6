/**
 * Settings, each from the first source that has it: options, environment, config file, default. It runs
 * in the thread that opens, and reads the environment there.
 */
#include "files/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "files/result_names.h"
#include "layout.h"
#include "supply.h"

static int number_from_environment(const char *const *names) {
    for (; *names != NULL; names++) {
        const char *text = getenv(*names);
        if (text == NULL || *text < '0' || *text > '9') continue;
        char *end;
        errno = 0;
        long number = strtol(text, &end, 10);
        if (*end == '\0' && errno == 0 && number <= INT_MAX) return (int)number;
    }
    return -1;
}

/* Launchers nest: torchrun or mpirun inside a Slurm job inherit Slurm's variables, which then describe the launcher's
 * own process. So the launcher nearest to the rank comes first: torchrun, which sets WORLD_SIZE, too. Without that,
 * LOCAL_RANK and RANK may be left over in the shell, and count after an MPI launcher's. */

static const char *const *nearest_first(const char *const *names) { return names + (getenv("WORLD_SIZE") == NULL); }

static const char *const local_rank_names[] = {"LOCAL_RANK",
                                               "OMPI_COMM_WORLD_LOCAL_RANK",
                                               "MPI_LOCALRANKID",
                                               "MV2_COMM_WORLD_LOCAL_RANK",
                                               "PALS_LOCAL_RANKID",
                                               "LOCAL_RANK",
                                               "FLUX_TASK_LOCAL_ID",
                                               "SLURM_LOCALID",
                                               NULL};

int supply_local_rank(void) { return number_from_environment(nearest_first(local_rank_names)); }

int supply__launcher_rank(void) {
    static const char *const names[] = {
        "RANK",           "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "RANK",
        "FLUX_TASK_RANK", "SLURM_PROCID",         NULL};
    return number_from_environment(nearest_first(names));
}

/* The variables that are set, each once: "LOCAL_RANK=0, SLURM_LOCALID=1". */
static void list_set(const char *const *names, char text[512]) {
    size_t used = 0;
    text[0] = '\0';
    for (const char *const *name = names; *name != NULL; name++) {
        const char *value = getenv(*name);
        if (value == NULL || (name > names && strcmp(*name, *names) == 0)) continue;
        used += (size_t)snprintf(text + used, 512 - used, "%s%s=%.16s", used > 0 ? ", " : "", *name, value);
    }
}

void supply__explain_local_rank(const supply_options_t *options, struct failure *failure) {
    if (options != NULL && (options->local_rank >= 0 || options->mapped_file != NULL)) return;
    char variables[512];
    list_set(nearest_first(local_rank_names), variables);
    supply__fail(failure, failure->status, "%s (this is local rank %d, by the first of %s)", failure->text,
                 supply_local_rank(), variables);
}

static const char *const rank_count_names[] = {
    "WORLD_SIZE",    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
    "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS", NULL};

/* Each process of a program whose MPI is not its launcher's takes itself for rank 0 of 1. lines: of the config files.
 */
static supply_status_t check_ranks(int ranks, size_t lines, struct failure *failure) {
    char variables[512];
    list_set(rank_count_names, variables);
    for (const char *const *name = rank_count_names; *name != NULL; name++)
        if (number_from_environment((const char *const[]){*name, NULL}) == ranks) return SUPPLY_OK;
    if (*variables != '\0')
        return supply__fail(
            failure, SUPPLY_ERROR_CONFIG,
            "the number of MPI's processes is %d, and the launcher has set %s: start the program with the mpirun of "
            "the MPI that it is linked with, or unset what another launcher has left",
            ranks, variables);
    if (ranks > 1 || lines < 2) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                        "the config files have %zu lines, and this is the only rank, which no launcher has started: "
                        "start the program with mpirun -n %zu, or give it files of one line",
                        lines, lines);
}

/* A ring that lies in the writer's own cache is slower to read: 0.7 to 0.8 of the speed, with a plain C producer. */
enum { RING_MIN = 4 << 20, RING_MAX = 16 << 20, PROCESSORS_OF_PAIR = 2, CACHES_MAX = 16 };

struct cache {
    unsigned level;
    uint64_t bytes;
    unsigned processors; /* that share it */
};

static bool settings_read_text(const char *folder, int index, const char *name, char *text, int bytes) {
    char path[256];
    snprintf(path, sizeof path, "%s/index%d/%s", folder, index, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    const bool got = fgets(text, bytes, file) != NULL;
    fclose(file);
    return got;
}

/* A list as "0-3,8". */
static unsigned count_processors(const char *list) {
    unsigned count = 0;
    while (*list >= '0' && *list <= '9') {
        char *after;
        const unsigned long first = strtoul(list, &after, 10);
        const unsigned long last = *after == '-' ? strtoul(after + 1, &after, 10) : first;
        count += (unsigned)(last - first + 1);
        list = *after == ',' ? after + 1 : after;
    }
    return count;
}

static bool read_cache(const char *folder, int index, struct cache *cache) {
    char level[8], type[16], size[16], list[1024];
    if (!settings_read_text(folder, index, "level", level, sizeof level) ||
        !settings_read_text(folder, index, "type", type, sizeof type) ||
        !settings_read_text(folder, index, "size", size, sizeof size) ||
        !settings_read_text(folder, index, "shared_cpu_list", list, sizeof list) ||
        strncmp(type, "Instruction", 11) == 0)
        return false;
    cache->level = (unsigned)strtoul(level, NULL, 10);
    cache->bytes = strtoull(size, NULL, 10) << 10; /* "2048K" */
    cache->processors = count_processors(list);
    return cache->processors > 0;
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most) {
    return value < least ? least : value > most ? most : value;
}

static uint64_t share_of_pair(const struct cache *cache) {
    return cache->processors <= PROCESSORS_OF_PAIR ? cache->bytes
                                                   : cache->bytes / cache->processors * PROCESSORS_OF_PAIR;
}

uint64_t supply__ring_for_caches(const char *folder) {
    uint64_t own = 0, share = 0;
    struct cache cache;
    for (int i = 0; i < CACHES_MAX; i++) {
        if (!read_cache(folder, i, &cache)) continue;
        if (cache.level == 2) own = cache.bytes;
        if (cache.level == 3) share = share_of_pair(&cache);
    }
    if (own == 0 && share == 0) return 0;
    return within(share > 2 * own ? share : 2 * own, RING_MIN, RING_MAX);
}

#define DEFAULT_TIMEOUT 120.0
#define DEFAULT_BLOCK_BYTES (2u << 20)
#define DEFAULT_BLOCK_COUNT 4

/* Beyond any use, and exact in nanoseconds. */
#define TIMEOUT_MAX 1e9

void supply_options_init(supply_options_t *options) {
    *options = (supply_options_t){.struct_bytes = sizeof *options, .local_rank = -1, .rank = -1};
}

static supply_status_t options_complete(const supply_options_t *given, supply_options_t *options,
                                        struct failure *failure) {
    supply_options_init(options);
    if (given == NULL) return SUPPLY_OK;
    if (given->struct_bytes != sizeof *options)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "options: struct_bytes is %zu, and libsupply %s has %zu: call supply_options_init() first, "
                            "or compile the program with this library's headers",
                            given->struct_bytes, supply_version(), sizeof *options);
    *options = *given;
    return SUPPLY_OK;
}

static supply_status_t set_named(struct named_path *named, const char *path, const char *origin,
                                 struct failure *failure) {
    named->path = strdup(path);
    named->origin = strdup(origin);
    if (named->path != NULL && named->origin != NULL) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

static supply_status_t copy_path(struct named_path *named, const char *path, struct failure *failure) {
    if (path[0] == '/') return set_named(named, path, "options", failure);
    return supply__fail(failure, SUPPLY_ERROR_CONFIG, "'%s' (options) is not an absolute path", path);
}

/* How many neighbours SUPPLY_SHARE makes a group; below 1: it does not say. lines: of the config files, which may have
 * some for ranks of other nodes. */
static int share_from_environment(const char *text, size_t lines) {
    static const char *const shares[] = {"SUPPLY_SHARE", NULL};
    static const char *const sizes[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "MPI_LOCALNRANKS",  "MV2_COMM_WORLD_LOCAL_SIZE",
                                        "PALS_LOCAL_SIZE",  NULL};
    if (strcmp(text, "node") != 0) return number_from_environment(shares);
    const int ranks = number_from_environment(sizes);
    return ranks > 0 ? ranks : (int)lines;
}

/* Whether this rank shares its ring, by the options or SUPPLY_SHARE. lines: of the config files, 0: there are none. */
static supply_status_t set_readers(const supply_options_t *options, size_t lines, struct settings *settings,
                                   struct failure *failure) {
    int share = options->readers, reader = options->reader;
    const char *text = share == 0 && lines > 0 ? supply__variable("SUPPLY_SHARE") : NULL;
    if (text != NULL) {
        share = share_from_environment(text, lines);
        if (share < 1)
            return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                                "SUPPLY_SHARE: '%s' is neither a number of ranks, 1 to %d, nor 'node'", text,
                                READERS_MAX);
        reader = settings->local_rank % share;
    }
    if (share < 0 || share > READERS_MAX || reader < 0 || (reader > 0 && reader >= share))
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "reader %d of %d: a ring has at most %d readers, which are counted from 0 (options.reader, "
                            "options.readers, SUPPLY_SHARE)",
                            reader, share, READERS_MAX);
    if (share < 2) return SUPPLY_OK;
    if (lines > 0 && (settings->local_rank < reader || (size_t)(settings->local_rank - reader) + (size_t)share > lines))
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "local rank %d is reader %d of %d, and the config files have %zu lines: the ranks of a "
                            "group are neighbours on one node, with a line for each",
                            settings->local_rank, reader, share, lines);
    settings->reader = (uint32_t)reader;
    settings->readers = (uint32_t)share;
    return SUPPLY_OK;
}

static supply_status_t files_from_paths(const supply_options_t *options, struct settings *settings,
                                        struct failure *failure) {
    if (options->mapped_file == NULL || options->request_pipe == NULL || options->notification_pipe == NULL)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "options: mapped_file, request_pipe and notification_pipe go together: set all or none");
    TRY(copy_path(&settings->files.mapped_file, options->mapped_file, failure));
    TRY(copy_path(&settings->files.request_pipe, options->request_pipe, failure));
    TRY(copy_path(&settings->files.notification_pipe, options->notification_pipe, failure));
    TRY(set_readers(options, 0, settings, failure));
    if (settings->reader == 0) return SUPPLY_OK;
    if (options->ring_file == NULL)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "options: reader %u must name the mapped file of reader 0 (ring_file)", settings->reader);
    return copy_path(&settings->ring_file, options->ring_file, failure);
}

static supply_status_t files_from_config(const supply_options_t *options, struct settings *settings,
                                         struct failure *failure) {
    const char *mapped_files = options->mapped_files ? options->mapped_files : supply__variable("SUPPLY_MAPPED_FILES");
    const char *named_pipes = options->named_pipes ? options->named_pipes : supply__variable("SUPPLY_NAMED_PIPES");
    if (mapped_files == NULL)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "no mapped-files.conf is given: set --mapped-files or SUPPLY_MAPPED_FILES");
    if (named_pipes == NULL)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "no named-pipes.conf given: set --named-pipes or SUPPLY_NAMED_PIPES");
    if (settings->local_rank < 0)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "the local rank is not known, so neither is the line of %s: start under an MPI launcher or "
                            "set --local-rank",
                            mapped_files);
    struct config_lines lines;
    supply_status_t status = supply__config_read(mapped_files, named_pipes, &lines, failure);
    if (status == SUPPLY_OK && (size_t)settings->local_rank >= lines.count)
        status = supply__fail(failure, SUPPLY_ERROR_CONFIG,
                              "%s and %s have %zu lines, but this is local rank %d: they need a line for every rank of "
                              "the node",
                              mapped_files, named_pipes, lines.count, settings->local_rank);
    if (status == SUPPLY_OK && options->ranks > 0) status = check_ranks(options->ranks, lines.count, failure);
    if (status == SUPPLY_OK) status = set_readers(options, lines.count, settings, failure);
    if (status == SUPPLY_OK) {
        settings->files = lines.lines[settings->local_rank];
        lines.lines[settings->local_rank] = (struct config_line){0};
    }
    if (status == SUPPLY_OK && settings->reader > 0) {
        struct named_path *first = &lines.lines[settings->local_rank - (int)settings->reader].mapped_file;
        settings->ring_file = *first;
        *first = (struct named_path){0};
    }
    supply__config_free(&lines);
    return status;
}

/* Where the run is, if its task is elsewhere. NULL: the options and the environment name files. */
static const char *address_of(const supply_options_t *options) {
    if (options->connect != NULL || options->mapped_files != NULL) return options->connect;
    return supply__variable("SUPPLY_CONNECT");
}

static supply_status_t set_address(const supply_options_t *options, const char *text, struct settings *settings,
                                   struct failure *failure) {
    if (options->mapped_files != NULL || options->named_pipes != NULL)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "options: connect is for a rank elsewhere, which has no config files: set one of them");
    if (options->readers > 1)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "options: ranks that connect have a ring each: leave readers out");
    if (settings->rank < 0)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%s: the number of this rank is not known: start the program with torchrun or mpirun, or "
                            "set options.rank",
                            text);
    settings->ranks = options->ranks;
    for (const char *const *name = rank_count_names; *name != NULL && settings->ranks <= 0; name++)
        settings->ranks = number_from_environment((const char *const[]){*name, NULL});
    if (settings->ranks < 0) settings->ranks = 0;
    TRY(set_named(&settings->files.mapped_file, text, options->connect != NULL ? "options" : "SUPPLY_CONNECT",
                  failure));
    settings->address = malloc(sizeof *settings->address);
    if (settings->address == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return supply__address_read(settings->address, text,
                                options->key != NULL ? options->key : supply__variable("SUPPLY_KEY"), failure);
}

static supply_status_t set_files(const supply_options_t *options, struct settings *settings, struct failure *failure) {
    if (options->local_rank < -1 || options->rank < -1)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "options: rank %d and local_rank %d must not be below -1",
                            options->rank, options->local_rank);
    settings->local_rank = options->local_rank >= 0 ? options->local_rank : supply_local_rank();
    settings->rank = options->rank >= 0 ? options->rank : supply__launcher_rank();
    if (options->mapped_file != NULL || options->request_pipe != NULL || options->notification_pipe != NULL)
        return files_from_paths(options, settings, failure);
    const char *address = address_of(options);
    if (address != NULL) return set_address(options, address, settings, failure);
    return files_from_config(options, settings, failure);
}

static supply_status_t options_timeout(const supply_options_t *options, double *timeout, struct failure *failure) {
    *timeout = options->timeout;
    if (options->timeout == 0) {
        *timeout = DEFAULT_TIMEOUT;
        const char *text = supply__variable("SUPPLY_TIMEOUT");
        if (text == NULL) return SUPPLY_OK;
        if (!supply__number_read(text, timeout) || !(*timeout > 0))
            return supply__fail(failure, SUPPLY_ERROR_CONFIG, "SUPPLY_TIMEOUT: '%s' is not a number of seconds above 0",
                                text);
    }
    if (!(*timeout > 0) || !isfinite(*timeout) || *timeout > TIMEOUT_MAX)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG, "the time limit must be above 0 and at most %.0f s, not %g",
                            TIMEOUT_MAX, *timeout);
    return SUPPLY_OK;
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* ring=auto: blocks have their default size, and the caches say how many there are. */
static void choose_ring(uint64_t *ring, uint64_t *block) {
    if (*block == 0) *block = DEFAULT_BLOCK_BYTES;
    *ring = supply__ring_for_caches(CACHES_FOLDER);
    if (*ring != 0 && *ring / BLOCK_COUNT_MIN < *block) *ring = 0;
}

static supply_status_t set_sizes(const supply_options_t *options, struct settings *settings, struct failure *failure) {
    uint64_t ring = options->ring_bytes ? options->ring_bytes : settings->files.ring_bytes;
    uint64_t block = options->block_bytes ? options->block_bytes : settings->files.block_bytes;
    const char *origin = settings->files.mapped_file.origin;
    if (options->ring_bytes == 0 && ring == RING_AUTO) choose_ring(&ring, &block);
    if (ring > INT64_MAX / 2 || block > BLOCK_BYTES_MAX)
        return supply__fail(
            failure, SUPPLY_ERROR_CONFIG,
            "%s: ring=%llu block=%llu: a block has at most %d bytes and a ring less than 4 EiB: set them "
            "smaller",
            origin, (unsigned long long)ring, (unsigned long long)block, BLOCK_BYTES_MAX);
    if (block == 0) {
        block = ring ? ring / DEFAULT_BLOCK_COUNT : DEFAULT_BLOCK_BYTES;
        if (block > BLOCK_BYTES_MAX) block = BLOCK_BYTES_MAX;
        if (block == 0) block = 1;
    }
    block = round_up(block, BLOCK_BYTES_UNIT);
    ring = ring ? round_up(ring, block) : DEFAULT_BLOCK_COUNT * block;
    if (ring / block < BLOCK_COUNT_MIN || ring / block > UINT32_MAX)
        return supply__fail(
            failure, SUPPLY_ERROR_CONFIG,
            "%s: a ring of %llu bytes holds %llu blocks of %llu bytes and must hold at least %d (at most "
            "%u): set ring= larger or block= smaller",
            origin, (unsigned long long)ring, (unsigned long long)(ring / block), (unsigned long long)block,
            BLOCK_COUNT_MIN, UINT32_MAX);
    settings->block_bytes = block;
    settings->block_count = (uint32_t)(ring / block);
    return SUPPLY_OK;
}

static supply_status_t set_start(const supply_options_t *options, struct settings *settings, struct failure *failure) {
    if (options->position == NULL || supply__position_unpack(options->position, &settings->start)) return SUPPLY_OK;
    return supply__fail(
        failure, SUPPLY_ERROR_ARGUMENT,
        "options: position holds none: fill it with supply_position_save() or supply_position_from_text()");
}

static supply_status_t settings_set_group(const supply_options_t *options, struct settings *settings,
                                          struct failure *failure) {
    const char *name = options->group ? options->group : settings->files.group;
    const char *origin = options->group ? "options" : settings->files.mapped_file.origin;
    settings->group = NO_GROUP;
    return name ? supply__group_find(name, origin, &settings->group, failure) : SUPPLY_OK;
}

supply_status_t supply__settings_files(const supply_options_t *given, struct settings *settings,
                                       struct failure *failure) {
    supply_options_t options;
    *settings = (struct settings){0};
    TRY(options_complete(given, &options, failure));
    return set_files(&options, settings, failure);
}

supply_status_t supply__settings(const supply_options_t *given, struct settings *settings, struct failure *failure) {
    supply_options_t options;
    *settings = (struct settings){0};
    TRY(options_complete(given, &options, failure));
    settings->rank_pid = (uint32_t)getpid();
    settings->exchange = options.exchange;
    settings->interruption = (struct interruption){options.interrupted, options.interrupted_context};
    TRY(set_files(&options, settings, failure));
    TRY(options_timeout(&options, &settings->timeout, failure));
    TRY(set_sizes(&options, settings, failure));
    TRY(set_start(&options, settings, failure));
    TRY(settings_set_group(&options, settings, failure));
    if (settings->address != NULL) return supply__generation_make(&settings->generation, failure);
    TRY(supply__results_folder(options.results_folder, &settings->files.mapped_file, &settings->results_folder,
                               failure));
    return supply__generation_make(&settings->generation, failure);
}

void supply__settings_free(struct settings *settings) {
    supply__config_line_free(&settings->files);
    free(settings->address);
    settings->address = NULL;
    free(settings->results_folder.path);
    free(settings->results_folder.origin);
    free(settings->ring_file.path);
    free(settings->ring_file.origin);
    settings->results_folder = settings->ring_file = (struct named_path){0};
}
