#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mix.h"

#define WINDOW_BYTES_MOST ((size_t)512 << 20)

#define SORT_MEMORY_BYTES ((size_t)1 << 30)

/* Larger than any header's struct: a size above it was never set. */
#define OPTIONS_BYTES_MAX 4096

/* The program's struct as this library's: the program may have been built with an older or newer header. */
static supply_status_t complete(const supply_exchange_options_t *given, supply_exchange_options_t *options,
                                struct failure *failure) {
    supply_exchange_options_init(options);
    if (given == NULL) return SUPPLY_OK;
    const size_t bytes = given->struct_bytes;
    if (bytes < sizeof bytes || bytes > OPTIONS_BYTES_MAX)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "exchange: struct_bytes is %zu: call supply_exchange_options_init() first", bytes);
    for (size_t i = sizeof *options; i < bytes; i++)
        if (((const uint8_t *)given)[i] != 0)
            return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                               "exchange: the program sets an option that libsupply_exchange %s does not know: load a "
                               "newer one, or do not set it",
                               supply_version());
    memcpy(options, given, bytes < sizeof *options ? bytes : sizeof *options);
    return SUPPLY_OK;
}

static supply_status_t check_policy(const supply_exchange_options_t *options, struct failure *failure) {
    const bool is_all = options->policy == SUPPLY_EXCHANGE_ALL, is_range = options->policy == SUPPLY_EXCHANGE_RANGE;
    const bool has_key = is_range || options->policy == SUPPLY_EXCHANGE_HASH;
    if ((int)options->policy < SUPPLY_EXCHANGE_AS_SUPPLIED || options->policy > SUPPLY_EXCHANGE_RANGE)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: there is no policy %d", (int)options->policy);
    if (!is_all && (options->fraction != 0 || options->seed != 0))
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: fraction and seed are for the policy all");
    if (!(options->fraction >= 0 && options->fraction <= 1))
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: fraction must be above 0 and at most 1, not %g",
                           options->fraction);
    if (has_key && (options->column == NULL || options->column[0] == '\0'))
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: the policy %s needs the name of a column",
                           is_range ? "range" : "hash");
    if (!has_key && (options->column != NULL || options->nulls_together))
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "exchange: column and nulls_together are for the policies hash and range");
    if (!is_range && (options->memory_bytes != 0 || options->spill_folder != NULL))
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "exchange: memory_bytes and spill_folder are for the policy range");
    return SUPPLY_OK;
}

static supply_status_t set_window(struct exchange_settings *settings, size_t given, const struct filler_pair *pair,
                                  struct failure *failure) {
    settings->window_bytes = given ? given : pair->ring_bytes / 2;
    if (given == 0 && settings->window_bytes > WINDOW_BYTES_MOST) settings->window_bytes = WINDOW_BYTES_MOST;
    if (settings->window_bytes <= WINDOW_BYTES_MOST) return SUPPLY_OK;
    return supply_fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: window_bytes is %zu, must be at most %zu", given,
                       WINDOW_BYTES_MOST);
}

static supply_status_t set_sorting(struct exchange_settings *settings, const supply_exchange_options_t *options,
                                   struct failure *failure) {
    const char *folder = options->spill_folder ? options->spill_folder : getenv("TMPDIR");
    settings->memory_bytes = options->memory_bytes ? options->memory_bytes : SORT_MEMORY_BYTES;
    settings->spill_folder = strdup(folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    return settings->spill_folder ? SUPPLY_OK : supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

supply_status_t exchange_settings(struct exchange_settings *settings, const supply_exchange_options_t *given,
                                  const struct filler_pair *pair, struct failure *failure) {
    supply_exchange_options_t options;
    *settings = (struct exchange_settings){0};
    supply_status_t status = complete(given, &options, failure);
    if (status == SUPPLY_OK) status = check_policy(&options, failure);
    if (status == SUPPLY_OK) status = set_window(settings, options.window_bytes, pair, failure);
    if (status != SUPPLY_OK) return status;
    settings->policy = options.policy;
    settings->seed = options.seed;
    settings->has_seed = options.seed != 0;
    settings->has_fraction = options.fraction > 0;
    settings->nulls_together = options.nulls_together;
    if (options.policy == SUPPLY_EXCHANGE_ALL) {
        const double fraction = options.fraction > 0 ? options.fraction : 1;
        settings->fraction = (uint32_t)(fraction * EXCHANGE_FRACTION_UNIT + 0.5);
        if (settings->fraction == 0) settings->fraction = 1;
    }
    if (options.column != NULL && (settings->column = strdup(options.column)) == NULL)
        return supply_fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return options.policy == SUPPLY_EXCHANGE_RANGE ? set_sorting(settings, &options, failure) : SUPPLY_OK;
}

supply_status_t exchange_settings_resolve(struct exchange_settings *settings, const struct filler_pair *pair,
                                          struct failure *failure) {
    const struct mapped_file_header *header = pair->header;
    /* Each is read once: the task can write into the header at any time. */
    const uint32_t supplied = __atomic_load_n(&header->exchange, __ATOMIC_RELAXED);
    const uint32_t fraction = __atomic_load_n(&header->exchange_fraction, __ATOMIC_RELAXED);
    const uint64_t seed = __atomic_load_n(&header->exchange_seed, __ATOMIC_RELAXED);
    if (supplied != 0 && supplied != EXCHANGE_ALL)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT,
                           "%s: Spark asks for the exchange %u, which libsupply_exchange %s does not know", pair->name,
                           supplied, supply_version());
    if (exchange_has_key(settings) || settings->policy == SUPPLY_EXCHANGE_BALANCE) {
        if (supplied == 0) return SUPPLY_OK;
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "%s: Spark was started with --shuffle all, which needs the policy all: name no other "
                           "policy, or start Spark without it",
                           pair->name);
    }
    if (settings->policy == SUPPLY_EXCHANGE_ALL && supplied == 0) return SUPPLY_OK;
    if (supplied == 0)
        return supply_fail(failure, SUPPLY_ERROR_ARGUMENT,
                           "%s: Spark was not started with --shuffle all: name a policy", pair->name);
    if (fraction == 0 || fraction > EXCHANGE_FRACTION_UNIT)
        return supply_fail(failure, SUPPLY_ERROR_CONTRACT, "%s: exchange_fraction is %u, must be 1 to %d", pair->name,
                           fraction, EXCHANGE_FRACTION_UNIT);
    if ((settings->has_seed && settings->seed != seed) || (settings->has_fraction && settings->fraction != fraction))
        return supply_fail(
            failure, SUPPLY_ERROR_ARGUMENT,
            "%s: the program sets another seed or fraction than Spark, which was started with --seed %" PRIu64
            " and --exchange-fraction %g: set them on one side only",
            pair->name, seed, (double)fraction / EXCHANGE_FRACTION_UNIT);
    settings->policy = SUPPLY_EXCHANGE_ALL;
    settings->seed = seed;
    settings->fraction = fraction;
    return SUPPLY_OK;
}

uint64_t exchange_settings_fingerprint(const struct exchange_settings *settings, int ranks) {
    const uint64_t numbers[] = {(uint64_t)settings->policy, settings->seed,         settings->fraction,
                                settings->nulls_together,   settings->window_bytes, (uint64_t)ranks};
    uint64_t fingerprint = exchange_hash(numbers, sizeof numbers, 0);
    if (settings->column != NULL) fingerprint = exchange_hash(settings->column, strlen(settings->column), fingerprint);
    return fingerprint ? fingerprint : 1;
}

void exchange_settings_text(const struct exchange_settings *settings, char *text, size_t text_bytes) {
    static const char *const names[] = {"as supplied", "all", "hash", "balance", "range"};
    const int length =
        snprintf(text, text_bytes, "policy %s, window_bytes %zu", names[settings->policy], settings->window_bytes);
    text += length;
    text_bytes -= (size_t)length;
    if (settings->policy == SUPPLY_EXCHANGE_ALL)
        snprintf(text, text_bytes, ", seed %llu, fraction %g", (unsigned long long)settings->seed,
                 (double)settings->fraction / EXCHANGE_FRACTION_UNIT);
    if (exchange_has_key(settings))
        snprintf(text, text_bytes, ", column '%s'%s", settings->column,
                 settings->nulls_together ? ", nulls together" : "");
}

void exchange_settings_free(struct exchange_settings *settings) {
    free(settings->column);
    free(settings->spill_folder);
    *settings = (struct exchange_settings){0};
}
