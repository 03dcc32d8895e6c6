/**
 * Copies the schema out of the mapped file and checks the copy: the task cannot change it afterwards. It runs in the
 * thread that uses the handle, without the lock.
 */
#include "block/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_PREFIX "+w:"
#define FORMAT_NOT_KNOWN ((struct format){FORMAT_UNKNOWN, 0, 0})

static const struct {
    const char *name;
    const char *format;
} datum_columns[DATUM_COLUMNS] = {
    [DATUM_KEY] = {"key", "z"},       [DATUM_LABEL] = {"label", "i"}, [DATUM_CHANNELS] = {"channels", "i"},
    [DATUM_HEIGHT] = {"height", "i"}, [DATUM_WIDTH] = {"width", "i"}, [DATUM_ENCODED] = {"encoded", "b"},
    [DATUM_DATA] = {"data", "z"},
};

/* The data is in place if it has the format of views. */
static bool is_datum_column(const struct schema_entry *entry, uint32_t index) {
    return strcmp(entry->name, datum_columns[index].name) == 0 &&
           (strcmp(entry->format, datum_columns[index].format) == 0 ||
            (index == DATUM_DATA && strcmp(entry->format, "vz") == 0));
}

static bool is_datum(const struct schema *schema) {
    if (schema->count != DATUM_COLUMNS || schema->column_count != DATUM_COLUMNS) return false;
    for (uint32_t i = 0; i < DATUM_COLUMNS; i++)
        if (!is_datum_column(&schema->entries[i], i)) return false;
    return true;
}

supply_status_t supply__schema_check_texts(const struct schema *schema, struct failure *failure) {
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct schema_entry *entry = &schema->entries[i];
        const char *field = NULL;
        if (memchr(entry->name, '\0', sizeof entry->name) == NULL)
            field = "name";
        else if (memchr(entry->format, '\0', sizeof entry->format) == NULL)
            field = "format";
        else if (memchr(entry->child_format, '\0', sizeof entry->child_format) == NULL)
            field = "child_format";
        if (field != NULL)
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                "schema_entry.%s of column %u has no terminating zero byte", field, i);
    }
    return SUPPLY_OK;
}

supply_status_t supply__schema_read(struct schema *schema, const struct mapped_file_header *header,
                                    struct failure *failure) {
    uint32_t count = __atomic_load_n(&header->schema_columns, __ATOMIC_ACQUIRE);
    if (count == 0 || count > SCHEMA_COLUMNS_MAX)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "schema_columns is %u, must be 1 to %d", count,
                            SCHEMA_COLUMNS_MAX);
    struct schema_entry *entries = malloc(count * sizeof *entries);
    if (entries == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    memcpy(entries, (const uint8_t *)header + SCHEMA_OFFSET, count * sizeof *entries);
    *schema = (struct schema){.entries = entries, .count = count};
    supply_status_t status = supply__schema_check_texts(schema, failure);
    if (status == SUPPLY_OK) status = supply__schema_index_entries(schema, failure);
    if (status == SUPPLY_OK)
        schema->is_datum = is_datum(schema);
    else
        supply__schema_free(schema);
    return status;
}

static supply_status_t fail_by_children(const struct schema_entry *entry, const char *why, struct failure *failure) {
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "schema_entry.children of column '%s' is %u, %s", entry->name,
                        entry->children, why);
}

/* Where the entries after the children of each entry begin, and how deep each lies. */
static supply_status_t find_ends(struct schema *schema, struct failure *failure) {
    struct {
        uint32_t entry, missing;
    } open[NESTING_MAX];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct schema_entry *entry = &schema->entries[i];
        if (depth == 0) schema->columns[schema->column_count++] = i;
        if (entry->children >= schema->count - i)
            return fail_by_children(entry, "and fewer entries follow it", failure);
        if (entry->children > 0 && depth == NESTING_MAX)
            return fail_by_children(entry, "and it lies too deep to have any", failure);
        schema->ends[i] = i + 1;
        if (entry->children > 0) {
            open[depth].entry = i;
            open[depth++].missing = entry->children;
            continue;
        }
        while (depth > 0 && --open[depth - 1].missing == 0) schema->ends[open[--depth].entry] = i + 1;
    }
    if (depth > 0) return fail_by_children(&schema->entries[open[0].entry], "and fewer entries follow it", failure);
    return SUPPLY_OK;
}

/* Whether the entry has the children of its format. That of a map is a struct of keys and values. */
static bool has_its_children(const struct schema_entry *entry, const struct format *format) {
    switch (format->layout) {
        case FORMAT_STRUCT:
            return entry->children > 0;
        case FORMAT_LIST:
            if (strcmp(entry->format, "+m") == 0)
                return entry->children == 1 && strcmp(entry[1].format, "+s") == 0 && entry[1].children == 2;
            return entry->children == 1;
        case FORMAT_FIXED_LIST:
            return entry->children == 1;
        default:
            return entry->children == 0;
    }
}

/* An entry of a format that is not known, or with other children, hides what belongs to it. */
static void find_formats(struct schema *schema) {
    for (uint32_t i = 0, hidden = 0; i < schema->count; i++) {
        const struct schema_entry *entry = &schema->entries[i];
        schema->formats[i] = supply__schema_format(entry);
        if (i >= hidden && has_its_children(entry, &schema->formats[i])) continue;
        schema->formats[i] = FORMAT_NOT_KNOWN;
        if (i >= hidden) hidden = schema->ends[i];
    }
}

supply_status_t supply__schema_index_entries(struct schema *schema, struct failure *failure) {
    schema->formats = calloc(schema->count, sizeof *schema->formats);
    schema->ends = calloc(schema->count, sizeof *schema->ends);
    schema->columns = calloc(schema->count, sizeof *schema->columns);
    if (schema->formats == NULL || schema->ends == NULL || schema->columns == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    const supply_status_t status = find_ends(schema, failure);
    if (status == SUPPLY_OK) find_formats(schema);
    return status;
}

uint32_t supply__schema_child(const struct schema *schema, uint32_t entry, uint32_t number) {
    uint32_t child = entry + 1;
    for (; number > 0; number--) child = schema->ends[child];
    return child;
}

struct schema_path supply__schema_path(const struct schema *schema, uint32_t entry) {
    struct schema_path path = {""};
    size_t length = 0;
    for (uint32_t i = 0; i <= entry && length < sizeof path.text; i++)
        if (i == entry || schema->ends[i] > entry)
            length += (size_t)snprintf(path.text + length, sizeof path.text - length, "%s%s", length > 0 ? "." : "",
                                       schema->entries[i].name);
    return path;
}

void supply__schema_free(struct schema *schema) {
    free(schema->columns);
    free(schema->ends);
    free(schema->formats);
    free(schema->entries);
    *schema = (struct schema){0};
}

int supply__schema_index(const struct schema *schema, const char *name) {
    for (uint32_t i = 0; i < schema->column_count; i++)
        if (strcmp(schema->entries[supply__schema_entry(schema, i)].name, name) == 0) return (int)i;
    return -1;
}

static struct format simple_format(const char *format) {
    if (format[0] != '\0' && format[1] == '\0') switch (format[0]) {
            case 'b':
                return (struct format){FORMAT_BITS, 0, 0};
            case 'c':
            case 'C':
                return (struct format){FORMAT_FIXED, 1, 0};
            case 's':
            case 'S':
            case 'e':
                return (struct format){FORMAT_FIXED, 2, 0};
            case 'i':
            case 'I':
            case 'f':
                return (struct format){FORMAT_FIXED, 4, 0};
            case 'l':
            case 'L':
            case 'g':
                return (struct format){FORMAT_FIXED, 8, 0};
            case 'z':
            case 'u':
                return (struct format){FORMAT_VARIABLE, 0, 0};
        }
    return FORMAT_NOT_KNOWN;
}

/* "+w:N": N numbers an element, or N elements of a child. */
static struct format list_format(const struct schema_entry *entry) {
    const bool has_child = entry->child_format[0] == '\0';
    const struct format child = simple_format(entry->child_format);
    char *end;
    const char *digits = entry->format + strlen(LIST_PREFIX);
    if ((!has_child && child.layout != FORMAT_FIXED) || *digits < '1' || *digits > '9') return FORMAT_NOT_KNOWN;
    const unsigned long size = strtoul(digits, &end, 10);
    if (*end != '\0' || size > BLOCK_BYTES_MAX / (has_child ? 1 : child.bytes)) return FORMAT_NOT_KNOWN;
    if (has_child) return (struct format){FORMAT_FIXED_LIST, 0, (uint32_t)size};
    return (struct format){FORMAT_FIXED, (uint32_t)size * child.bytes, (uint32_t)size};
}

/* "d:PRECISION,SCALE" */
static bool is_decimal(const char *format) {
    int end = 0;
    return sscanf(format, "d:%*2[0-9],%*2[0-9]%n", &end) == 0 && end > 0 && format[end] == '\0';
}

struct format supply__schema_format(const struct schema_entry *entry) {
    const char *format = entry->format;
    if (strncmp(format, LIST_PREFIX, strlen(LIST_PREFIX)) == 0) return list_format(entry);
    if (strcmp(format, "vz") == 0) return (struct format){FORMAT_VIEWS, 0, 0};
    if (strcmp(format, "+s") == 0) return (struct format){FORMAT_STRUCT, 0, 0};
    if (strcmp(format, "+l") == 0 || strcmp(format, "+m") == 0) return (struct format){FORMAT_LIST, 0, 0};
    if (strcmp(format, "tdD") == 0 || strcmp(format, "tiM") == 0) return (struct format){FORMAT_FIXED, 4, 0};
    if (strcmp(format, "tDu") == 0 || strcmp(format, "ttn") == 0) return (struct format){FORMAT_FIXED, 8, 0};
    if (strncmp(format, "tsu:", 4) == 0) return (struct format){FORMAT_FIXED, 8, 0};
    if (is_decimal(format)) return (struct format){FORMAT_FIXED, 16, 0};
    return simple_format(format);
}

supply_status_t supply__schema_check_datum(const struct schema *schema, const char *who, struct failure *failure) {
    if (schema->is_datum) return SUPPLY_OK;
    for (uint32_t i = 0; i < DATUM_COLUMNS && i < schema->column_count; i++) {
        const struct schema_entry *entry = &schema->entries[supply__schema_entry(schema, i)];
        if (!is_datum_column(entry, i))
            return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                                "%s: column %u is '%s' of format '%s', a Datum's is '%s' of format '%s': use "
                                "supply_next() and supply_column()",
                                who, i, entry->name, entry->format, datum_columns[i].name, datum_columns[i].format);
    }
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT,
                        "%s: there are %u columns, a Datum has %d: use supply_next() and supply_column()", who,
                        schema->column_count, DATUM_COLUMNS);
}
