/**
 * Copies the schema out of the mapped file and checks the copy: the task cannot change it afterwards. It runs in the
 * thread that uses the handle, without the lock.
 */
#include "block/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats.h"

#define LIST_PREFIX "+w:"
#define TIMESTAMP "tsu:"
#define FORMAT_NOT_KNOWN ((struct format){FORMAT_UNKNOWN, 0, 0})

static const char *wrong_text(const struct schema *schema, const struct schema_entry *entry) {
    if (memchr(entry->name, '\0', sizeof entry->name) == NULL) return "name";
    if (memchr(entry->format, '\0', sizeof entry->format) == NULL) return "format";
    if (memchr(entry->child_format, '\0', sizeof entry->child_format) == NULL) return "child_format";
    if (entry->name_bytes == 0) return NULL;
    if (entry->name[0] != '\0') return "name";
    if (entry->name_bytes > NAME_BYTES_MAX || entry->name_bytes >= schema->text_bytes) return "name_bytes";
    if (entry->name_offset >= schema->text_bytes - entry->name_bytes) return "name_offset";
    const char *text = supply__schema_texts(schema) + entry->name_offset;
    return memchr(text, '\0', entry->name_bytes + 1) == text + entry->name_bytes ? NULL : "name_bytes";
}

supply_status_t supply__schema_check_texts(const struct schema *schema, struct failure *failure) {
    for (uint32_t i = 0; i < schema->count; i++) {
        const char *field = wrong_text(schema, &schema->entries[i]);
        if (field == NULL) continue;
        const bool is_place = strcmp(field, "name_offset") == 0 || strcmp(field, "name_bytes") == 0;
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "schema_entry.%s of column %u %s", field, i,
                            is_place ? "is not that of one of the texts" : "has no terminating zero byte");
    }
    return SUPPLY_OK;
}

supply_status_t supply__schema_copy(struct schema *schema, const void *entries, uint32_t count, uint32_t text_bytes,
                                    struct failure *failure) {
    *schema = (struct schema){.count = count, .text_bytes = text_bytes};
    const size_t bytes = supply__schema_bytes(schema);
    schema->entries = malloc(bytes);
    if (schema->entries == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    if (entries != NULL) memcpy(schema->entries, entries, bytes);
    return SUPPLY_OK;
}

/* A wide schema lies after the ring. It is read by a call: memory after the file's end would raise SIGBUS. */
static supply_status_t read_wide(const struct schema *schema, const struct mapped_file *mapped,
                                 struct failure *failure) {
    uint8_t *to = (uint8_t *)schema->entries;
    const size_t bytes = supply__schema_bytes(schema);
    if (mapped->wide_schema != NULL) {
        memcpy(to, mapped->wide_schema, bytes);
        return SUPPLY_OK;
    }
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(mapped->file.fd, to + done, bytes - done, (off_t)(mapped->bytes + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return supply__fail(failure, got < 0 ? SUPPLY_ERROR_SYSTEM : SUPPLY_ERROR_CONTRACT,
                                got < 0 ? "the schema of %zu bytes after the ring cannot be read: %m"
                                        : "schema_bytes is %zu, and the mapped file ends before",
                                bytes);
        done += (size_t)got;
    }
    return SUPPLY_OK;
}

static supply_status_t schema_check_numbers(uint32_t count, uint32_t bytes, struct failure *failure) {
    const uint32_t most = bytes == 0 ? SCHEMA_COLUMNS_MAX : SCHEMA_ENTRIES_MAX;
    if (count == 0 || count > most)
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "schema_columns is %u, must be 1 to %u", count, most);
    const size_t least = count * sizeof(struct schema_entry);
    if (bytes != 0 && (bytes < least || bytes > SCHEMA_BYTES_MAX))
        return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "schema_bytes is %u, must be %zu to %d", bytes, least,
                            SCHEMA_BYTES_MAX);
    return SUPPLY_OK;
}

supply_status_t supply__schema_read(struct schema *schema, const struct mapped_file *mapped, struct failure *failure) {
    const struct mapped_file_header *header = mapped->header;
    const uint32_t count = __atomic_load_n(&header->schema_columns, __ATOMIC_ACQUIRE);
    const uint32_t bytes = __atomic_load_n(&header->schema_bytes, __ATOMIC_RELAXED);
    *schema = (struct schema){0};
    supply_status_t status = schema_check_numbers(count, bytes, failure);
    if (status != SUPPLY_OK) return status;
    if (bytes == 0) {
        status = supply__schema_copy(schema, (const uint8_t *)header + SCHEMA_OFFSET, count, 0, failure);
    } else {
        const uint32_t of_entries = count * (uint32_t)sizeof(struct schema_entry);
        status = supply__schema_copy(schema, NULL, count, bytes - of_entries, failure);
        if (status == SUPPLY_OK) status = read_wide(schema, mapped, failure);
    }
    if (status == SUPPLY_OK) status = supply__schema_check_texts(schema, failure);
    if (status == SUPPLY_OK) status = supply__schema_index_entries(schema, failure);
    if (status != SUPPLY_OK) supply__schema_free(schema);
    return status;
}

supply_status_t supply__schema_set_name(struct schema *schema, uint32_t entry, const char *name,
                                        struct failure *failure) {
    const size_t bytes = strlen(name);
    struct schema_entry *named = &schema->entries[entry];
    if (bytes < sizeof named->name) {
        memcpy(named->name, name, bytes + 1);
        return SUPPLY_OK;
    }
    const size_t before = supply__schema_bytes(schema);
    if (bytes > NAME_BYTES_MAX || before + bytes + 1 > SCHEMA_BYTES_MAX)
        return supply__fail(failure, SUPPLY_ERROR_ARGUMENT,
                            "the name of column %u has %zu bytes: a name has at most %d, and a schema %d", entry, bytes,
                            NAME_BYTES_MAX, SCHEMA_BYTES_MAX);
    struct schema_entry *larger = realloc(schema->entries, before + bytes + 1);
    if (larger == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    schema->entries = larger;
    memcpy((uint8_t *)larger + before, name, bytes + 1);
    larger[entry].name_offset = schema->text_bytes;
    larger[entry].name_bytes = (uint32_t)bytes;
    schema->text_bytes += (uint32_t)bytes + 1;
    return SUPPLY_OK;
}

static supply_status_t fail_by_children(const struct schema *schema, uint32_t index, const char *why,
                                        struct failure *failure) {
    return supply__fail(failure, SUPPLY_ERROR_CONTRACT, "schema_entry.children of column '%s' is %u, %s",
                        supply__schema_name(schema, index), schema->entries[index].children, why);
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
            return fail_by_children(schema, i, "and fewer entries follow it", failure);
        if (entry->children > 0 && depth == NESTING_MAX)
            return fail_by_children(schema, i, "and it lies too deep to have any", failure);
        schema->ends[i] = i + 1;
        if (entry->children > 0) {
            open[depth].entry = i;
            open[depth++].missing = entry->children;
            continue;
        }
        while (depth > 0 && --open[depth - 1].missing == 0) schema->ends[open[--depth].entry] = i + 1;
    }
    if (depth > 0) return fail_by_children(schema, open[0].entry, "and fewer entries follow it", failure);
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
                                       supply__schema_name(schema, i));
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
    for (uint32_t i = 0; i < schema->column_count; i++) {
        const uint32_t entry = schema->columns != NULL ? schema->columns[i] : i;
        if (strcmp(supply__schema_name(schema, entry), name) == 0) return (int)i;
    }
    return -1;
}

static struct format plain_format(const char *text) {
#define FIXED(text, bytes, kind) {text, {FORMAT_FIXED, bytes, 0}},
#define OTHER(text, layout) {text, {FORMAT_##layout, 0, 0}},
    static const struct {
        const char *text;
        struct format format;
    } formats[] = {FIXED_FORMATS(FIXED) OTHER_FORMATS(OTHER)};
    // A zone changes nothing in the values.
    if (strncmp(text, TIMESTAMP, strlen(TIMESTAMP)) == 0) text = TIMESTAMP;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].text, text) == 0) return formats[i].format;
    return FORMAT_NOT_KNOWN;
}

/* "+w:N": N numbers an element, or N elements of a child. */
static struct format list_format(const struct schema_entry *entry) {
    const bool has_child = entry->child_format[0] == '\0', is_letter = strlen(entry->child_format) == 1;
    // Numbers have formats of one letter.
    const struct format child = is_letter ? plain_format(entry->child_format) : FORMAT_NOT_KNOWN;
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
    if (is_decimal(format)) return (struct format){FORMAT_FIXED, 16, 0};
    return plain_format(format);
}
