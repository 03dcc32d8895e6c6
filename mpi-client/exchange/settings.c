/**
 * Learns the columns and checks the options of an exchange. Columns come from the handle's own checked schema, or from
 * another rank, and then are checked again. Its caller has the exchange's lock.
 */
#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"

/* Validity, lengths and data. */
enum { WIRE_BUFFERS_OF_COLUMN = 3 };

bool exchange_is_variable(const struct column_plan *plan) {
    return plan->format.layout == FORMAT_VARIABLE || plan->format.layout == FORMAT_VIEWS;
}

static void settings_add_buffer(struct columns *columns, uint32_t column, enum wire_kind kind) {
    columns->buffers[columns->buffer_count++] =
        (struct wire_buffer){.column = column, .kind = kind, .variable = columns->variable_count};
}

static void settings_plan_column(struct columns *columns, uint32_t index) {
    const struct column_plan *plan = &columns->plans[index];
    const bool is_variable = exchange_is_variable(plan);
    if (plan->is_nullable) settings_add_buffer(columns, index, WIRE_VALIDITY);
    if (is_variable) settings_add_buffer(columns, index, WIRE_LENGTHS);
    settings_add_buffer(columns, index, WIRE_DATA);
    if (plan->is_nullable) columns->fixed_bytes++;
    if (is_variable)
        columns->fixed_bytes += sizeof(int32_t);
    else
        columns->fixed_bytes += plan->format.layout == FORMAT_BITS ? 1 : plan->format.bytes;
    columns->variable_count += is_variable;
}

static uint64_t settings_fingerprint_of(const struct schema *schema) {
    uint64_t fingerprint = schema->count;
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct schema_entry *entry = &schema->entries[i];
        const char *name = supply__schema_name(schema, i);
        fingerprint = supply__hash(name, strlen(name), fingerprint);
        fingerprint = supply__hash(entry->format, strlen(entry->format), fingerprint);
        fingerprint = supply__hash(entry->child_format, strlen(entry->child_format), fingerprint);
        fingerprint = supply__mix(fingerprint ^ entry->flags ^ (uint64_t)entry->children << 32);
    }
    return fingerprint ? fingerprint : 1;
}

static supply_status_t settings_check_formats(struct schema *schema, const char *name, struct failure *failure) {
    for (uint32_t i = 0; i < schema->count; i++) {
        struct schema_entry *entry = &schema->entries[i];
        if (schema->formats[i].layout == FORMAT_UNKNOWN)
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                "%s: column '%s' has format '%s', which this exchange does not know: drop the column, "
                                "or use a newer libsupply_exchange",
                                name, supply__schema_path(schema, i).text, entry->format);
        if (schema->formats[i].layout == FORMAT_VIEWS) memcpy(entry->format, "z", sizeof "z");
    }
    return SUPPLY_OK;
}

/* Plans the columns of columns->whole, and fills in columns->schema. */
static supply_status_t settings_plan(struct columns *columns, const char *name, struct failure *failure) {
    struct schema *whole = &columns->whole;
    supply_status_t status = supply__schema_check_texts(whole, failure);
    if (status == SUPPLY_OK) status = supply__schema_index_entries(whole, failure);
    if (status != SUPPLY_OK) return supply__fail(failure, status, "%s: %s", name, failure->text);
    TRY(settings_check_formats(whole, name, failure));
    const uint32_t count = whole->column_count;
    /* All texts, so that they keep their places. */
    status = supply__schema_copy(&columns->schema, NULL, count, whole->text_bytes, failure);
    if (status != SUPPLY_OK) return status;
    memcpy(columns->schema.entries + count, supply__schema_texts(whole), whole->text_bytes);
    columns->plans = calloc(count, sizeof *columns->plans);
    columns->buffers = calloc((size_t)count * WIRE_BUFFERS_OF_COLUMN, sizeof *columns->buffers);
    if (columns->plans == NULL || columns->buffers == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "%s: out of memory", name);
    columns->schema.column_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = supply__schema_entry(whole, i);
        const struct schema_entry *entry = &whole->entries[index];
        columns->schema.entries[i] = *entry;
        columns->plans[i] =
            (struct column_plan){.format = whole->formats[index], .is_nullable = (entry->flags & COLUMN_NULLABLE) != 0};
        if (entry->children > 0) columns->plans[i].format = (struct format){FORMAT_VARIABLE, 0, 0};
        settings_plan_column(columns, i);
    }
    columns->fingerprint = settings_fingerprint_of(whole);
    return SUPPLY_OK;
}

static supply_status_t settings_plan_or_free(struct columns *columns, const char *name, struct failure *failure) {
    const supply_status_t status = settings_plan(columns, name, failure);
    if (status != SUPPLY_OK) exchange_columns_free(columns);
    return status;
}

supply_status_t exchange_columns_set(struct columns *columns, const struct schema_entry *entries, uint32_t count,
                                     uint32_t text_bytes, const char *name, struct failure *failure) {
    const supply_status_t status = supply__schema_copy(&columns->whole, entries, count, text_bytes, failure);
    if (status != SUPPLY_OK) return supply__fail(failure, status, "%s: %s", name, failure->text);
    return settings_plan_or_free(columns, name, failure);
}

supply_status_t exchange_columns_learn(struct columns *columns, supply_t *pair, const char *name,
                                       struct failure *failure) {
    const struct schema *schema;
    struct columns own = {0};
    if (columns->is_of_pair) return SUPPLY_OK;
    supply_status_t status = supply__filler_schema(pair, &schema, failure);
    if (status != SUPPLY_OK || schema == NULL) return status;
    status = exchange_columns_set(&own, schema->entries, schema->count, schema->text_bytes, name, failure);
    if (status != SUPPLY_OK) return status;
    if (columns->schema.count == 0) {
        *columns = own;
    } else {
        if (columns->fingerprint != own.fingerprint)
            status = supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                  "%s: Spark supplies other columns than to other ranks", name);
        exchange_columns_free(&own);
    }
    columns->is_of_pair = status == SUPPLY_OK;
    return status;
}

size_t exchange_wire_bytes(const struct columns *columns, const struct wire_buffer *buffer, uint64_t elements,
                           const uint64_t *value_bytes) {
    const struct column_plan *plan = &columns->plans[buffer->column];
    if (buffer->kind == WIRE_VALIDITY) return elements;
    if (buffer->kind == WIRE_LENGTHS) return elements * sizeof(int32_t);
    if (exchange_is_variable(plan)) return value_bytes[buffer->variable];
    return plan->format.layout == FORMAT_BITS ? elements : elements * plan->format.bytes;
}

void exchange_columns_text(const struct columns *columns, char *text, size_t text_bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < columns->schema.count && length < text_bytes; i++) {
        const struct schema_entry *entry = &columns->schema.entries[i];
        length += (size_t)snprintf(text + length, text_bytes - length, "%s'%s' %s%s%s", i > 0 ? ", " : "",
                                   supply__schema_name(&columns->schema, i), entry->format, entry->child_format,
                                   columns->plans[i].is_nullable ? "?" : "");
    }
}

void exchange_columns_free(struct columns *columns) {
    supply__schema_free(&columns->schema);
    supply__schema_free(&columns->whole);
    free(columns->plans);
    free(columns->buffers);
    *columns = (struct columns){0};
}

#define WINDOW_BYTES_MOST ((size_t)512 << 20)

#define SORT_MEMORY_BYTES ((size_t)1 << 30)

/* Larger than any header's struct: a size above it was never set. */
#define OPTIONS_BYTES_MAX 4096

static supply_status_t settings_complete(const supply_exchange_options_t *given, supply_exchange_options_t *options,
                                         struct failure *failure) {
    supply_exchange_options_init(options);
    if (given == NULL) return SUPPLY_OK;
    if (given->struct_bytes != sizeof *options)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "exchange: struct_bytes is %zu, and libsupply_exchange %s has %zu: call "
                            "supply_exchange_options_init() first, or compile the program with this library's headers",
                            given->struct_bytes, supply_version(), sizeof *options);
    *options = *given;
    return SUPPLY_OK;
}

static supply_status_t settings_check_policy(const supply_exchange_options_t *options, struct failure *failure) {
    const bool is_all = options->policy == SUPPLY_EXCHANGE_ALL, is_range = options->policy == SUPPLY_EXCHANGE_RANGE;
    const bool has_key = is_range || options->policy == SUPPLY_EXCHANGE_HASH;
    if ((int)options->policy < SUPPLY_EXCHANGE_AS_SUPPLIED || options->policy > SUPPLY_EXCHANGE_RANGE)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: there is no policy %d", (int)options->policy);
    if (!is_all && (options->fraction != 0 || options->seed != 0))
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: fraction and seed are for the policy all");
    if (!(options->fraction >= 0 && options->fraction <= 1))
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: fraction must be above 0 and at most 1, not %g",
                            options->fraction);
    if (has_key && (options->column == NULL || options->column[0] == '\0'))
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: the policy %s needs the name of a column",
                            is_range ? "range" : "hash");
    if (!has_key && (options->column != NULL || options->nulls_together))
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "exchange: column and nulls_together are for the policies hash and range");
    if (!is_range && (options->memory_bytes != 0 || options->spill_folder != NULL))
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "exchange: memory_bytes and spill_folder are for the policy range");
    return SUPPLY_OK;
}

static supply_status_t settings_set_window(struct exchange_settings *settings, size_t given,
                                           const struct filler_pair *pair, struct failure *failure) {
    settings->window_bytes = given ? given : pair->slot_bytes * pair->slots / 2;
    if (given == 0 && settings->window_bytes > WINDOW_BYTES_MOST) settings->window_bytes = WINDOW_BYTES_MOST;
    if (settings->window_bytes <= WINDOW_BYTES_MOST) return SUPPLY_OK;
    return supply__fail(failure, SUPPLY_ERROR_ARGUMENT, "exchange: window_bytes is %zu, must be at most %zu", given,
                        WINDOW_BYTES_MOST);
}

static supply_status_t settings_set_sorting(struct exchange_settings *settings,
                                            const supply_exchange_options_t *options, struct failure *failure) {
    const char *folder = options->spill_folder ? options->spill_folder : getenv("TMPDIR");
    settings->memory_bytes = options->memory_bytes ? options->memory_bytes : SORT_MEMORY_BYTES;
    settings->spill_folder = strdup(folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    return settings->spill_folder ? SUPPLY_OK : supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
}

supply_status_t exchange_settings(struct exchange_settings *settings, const supply_exchange_options_t *given,
                                  const struct filler_pair *pair, struct failure *failure) {
    supply_exchange_options_t options;
    *settings = (struct exchange_settings){0};
    TRY(settings_complete(given, &options, failure));
    TRY(settings_check_policy(&options, failure));
    TRY(settings_set_window(settings, options.window_bytes, pair, failure));
    settings->policy = options.policy;
    settings->seed = options.seed;
    settings->has_seed = options.seed != 0;
    settings->has_fraction = options.fraction > 0;
    settings->nulls_together = options.nulls_together;
    settings->copies = !options.messages_only;
    if (options.policy == SUPPLY_EXCHANGE_ALL) {
        const double fraction = options.fraction > 0 ? options.fraction : 1;
        settings->fraction = (uint32_t)(fraction * EXCHANGE_FRACTION_UNIT + 0.5);
        if (settings->fraction == 0) settings->fraction = 1;
    }
    if (options.column != NULL && (settings->column = strdup(options.column)) == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return options.policy == SUPPLY_EXCHANGE_RANGE ? settings_set_sorting(settings, &options, failure) : SUPPLY_OK;
}

supply_status_t exchange_settings_resolve(struct exchange_settings *settings, const struct filler_pair *pair,
                                          struct failure *failure) {
    const struct mapped_file_header *header = pair->header;
    /* Each is read once: the task can write into the header at any time. */
    const uint32_t supplied = __atomic_load_n(&header->exchange, __ATOMIC_RELAXED);
    const uint32_t fraction = __atomic_load_n(&header->exchange_fraction, __ATOMIC_RELAXED);
    const uint64_t seed = __atomic_load_n(&header->exchange_seed, __ATOMIC_RELAXED);
    if (supplied != 0 && supplied != EXCHANGE_ALL)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                            "%s: Spark asks for the exchange %u, which libsupply_exchange %s does not know", pair->name,
                            supplied, supply_version());
    if (exchange_has_key(settings) || settings->policy == SUPPLY_EXCHANGE_BALANCE) {
        if (supplied == 0) return SUPPLY_OK;
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "%s: Spark was started with --shuffle all, which needs the policy all: name no other "
                            "policy, or start Spark without it",
                            pair->name);
    }
    if (settings->policy == SUPPLY_EXCHANGE_ALL && supplied == 0) return SUPPLY_OK;
    if (supplied == 0)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "%s: Spark was not started with --shuffle all: name a policy", pair->name);
    if (fraction == 0 || fraction > EXCHANGE_FRACTION_UNIT)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "%s: exchange_fraction is %u, must be 1 to %d", pair->name,
                            fraction, EXCHANGE_FRACTION_UNIT);
    if ((settings->has_seed && settings->seed != seed) || (settings->has_fraction && settings->fraction != fraction))
        return supply__fail(
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
    uint64_t fingerprint = supply__hash(numbers, sizeof numbers, 0);
    if (settings->column != NULL) fingerprint = supply__hash(settings->column, strlen(settings->column), fingerprint);
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
