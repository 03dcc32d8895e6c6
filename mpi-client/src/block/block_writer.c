/**
 * Stages rows of a result in memory that is reused, and lays them out as a block. The rows were checked before
 * (api/result_columns.c). It is of one result, in the thread that uses it.
 */
#include "block/block_writer.h"

#include <stdlib.h>
#include <string.h>

#include "block/schema.h"

#define CAPACITY_MIN ((size_t)4096)

/* Space for `count` more bytes, which count as written. NULL: no memory. */
static uint8_t *buffer_reserve(struct column_buffer *buffer, size_t count) {
    if (count > buffer->capacity - buffer->size || buffer->bytes == NULL) {
        size_t capacity = 2 * buffer->capacity;
        if (capacity < buffer->size + count) capacity = buffer->size + count;
        if (capacity < CAPACITY_MIN) capacity = CAPACITY_MIN;
        uint8_t *grown = realloc(buffer->bytes, capacity);
        if (grown == NULL) return NULL;
        buffer->bytes = grown;
        buffer->capacity = capacity;
    }
    uint8_t *space = buffer->bytes + buffer->size;
    buffer->size += count;
    return space;
}

/* At most eight bits from `first` on, in the low bits of the result. Reads no byte that has none of them. */
static uint8_t few_bits(const uint8_t *bits, uint64_t first, unsigned count) {
    const unsigned shift = first % 8;
    unsigned value = bits[first / 8] >> shift;
    if (shift + count > 8) value |= (unsigned)bits[first / 8 + 1] << (8 - shift);
    return (uint8_t)(value & (0xFFu >> (8 - count)));
}

/* Appends bits `first` to `first + count - 1` of a bitmap, after `size` bits. NULL: ones. False: no memory. */
static bool buffer_append_bits(struct column_buffer *buffer, uint64_t size, const uint8_t *bits, uint64_t first,
                               uint64_t count) {
    if (buffer_reserve(buffer, supply__bitmap_bytes(size + count) - buffer->size) == NULL) return false;
    if (size % 8 == 0 && (bits == NULL || first % 8 == 0)) {
        const size_t whole = (size_t)(count / 8);
        if (bits == NULL)
            memset(&buffer->bytes[size / 8], 0xFF, whole);
        else if (whole > 0)
            memcpy(&buffer->bytes[size / 8], &bits[first / 8], whole);
        size += 8 * whole;
        first += 8 * whole;
        count -= 8 * whole;
    }
    while (count > 0) {
        const unsigned shift = size % 8, space = 8 - shift, step = count < space ? (unsigned)count : space;
        const uint8_t value = bits == NULL ? (uint8_t)(0xFFu >> (8 - step)) : few_bits(bits, first, step);
        uint8_t *byte = &buffer->bytes[size / 8];
        *byte = (uint8_t)((shift == 0 ? 0 : *byte) | value << shift);
        size += step;
        first += step;
        count -= step;
    }
    return true;
}

uint64_t supply__bits_count_zeros(const uint8_t *bits, uint64_t first, uint64_t count) {
    uint64_t ones = 0, done = 0;
    for (uint64_t word; first % 8 == 0 && count - done >= 64; done += 64) {
        memcpy(&word, &bits[(first + done) / 8], sizeof word);
        ones += (unsigned)__builtin_popcountll(word);
    }
    for (; done < count; done += 8)
        ones +=
            (unsigned)__builtin_popcount(few_bits(bits, first + done, count - done < 8 ? (unsigned)(count - done) : 8));
    return count - ones;
}

static void buffer_free(struct column_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct column_buffer){0};
}

/* Offsets of a block are int32, and so is the number of its rows here. */
#define ROWS_MAX INT32_MAX

/* Of a column: validity, offsets, data, and what aligns each. */
#define PIECES_OF_COLUMN 6

struct staged_column {
    struct format format;
    bool is_nullable;
    uint32_t rows;                 /* of a child: those of all rows together */
    struct column_buffer validity; /* if it is nullable */
    struct column_buffer offsets;  /* of values of any length, and of lists */
    struct column_buffer data;
};

supply_status_t supply__block_writer_init(struct block_writer *writer, const struct schema *schema, size_t block_bytes,
                                          struct failure *failure) {
    *writer = (struct block_writer){.schema = schema, .block_bytes = block_bytes};
    if (supply__block_header_bytes(schema->count) >= block_bytes)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "%u columns need blocks of more than %zu bytes: block=%llu at least", schema->count,
                            supply__block_header_bytes(schema->count),
                            supply__block_bytes_for(2 * supply__block_header_bytes(schema->count) +
                                                    (uint64_t)schema->count * 2 * BUFFER_ALIGNMENT));
    writer->columns = calloc(schema->count, sizeof *writer->columns);
    writer->ranges = calloc(schema->count, sizeof *writer->ranges);
    writer->header = calloc(1, supply__block_header_bytes(schema->count));
    writer->pieces = calloc(1 + PIECES_OF_COLUMN * (size_t)schema->count, sizeof *writer->pieces);
    if (writer->columns == NULL || writer->ranges == NULL || writer->header == NULL || writer->pieces == NULL)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < schema->count; i++) {
        writer->columns[i].format = schema->formats[i];
        writer->columns[i].is_nullable = (schema->entries[i].flags & COLUMN_NULLABLE) != 0;
    }
    return SUPPLY_OK;
}

void supply__block_writer_free(struct block_writer *writer) {
    for (uint32_t i = 0; writer->columns != NULL && i < writer->schema->count; i++) {
        buffer_free(&writer->columns[i].validity);
        buffer_free(&writer->columns[i].offsets);
        buffer_free(&writer->columns[i].data);
    }
    free(writer->columns);
    free(writer->ranges);
    free(writer->header);
    free(writer->pieces);
    *writer = (struct block_writer){0};
}

struct row_range supply__child_range(const struct format *format, const struct column_rows *rows,
                                     struct row_range range) {
    const uint64_t from = rows->first + range.from, end = rows->first + range.end;
    if (range.from == range.end) return (struct row_range){0, 0};
    if (format->layout == FORMAT_LIST)
        return (struct row_range){(uint64_t)rows->offsets[from], (uint64_t)rows->offsets[end]};
    const uint64_t size = format->layout == FORMAT_FIXED_LIST ? format->list_size : 1;
    return (struct row_range){from * size, end * size};
}

/* The ranges of all entries: parents stand in front of their children. */
static void set_ranges(const struct block_writer *writer, const struct column_rows *rows, uint64_t from, uint64_t end) {
    const struct schema *schema = writer->schema;
    for (uint32_t i = 0; i < schema->column_count; i++)
        writer->ranges[schema->columns[i]] = (struct row_range){from, end};
    for (uint32_t i = 0; i < schema->count; i++) {
        if (schema->entries[i].children == 0) continue;
        const struct row_range range = supply__child_range(&schema->formats[i], &rows[i], writer->ranges[i]);
        for (uint32_t child = i + 1; child < schema->ends[i]; child = schema->ends[child])
            writer->ranges[child] = range;
    }
}

static uint64_t value_bytes(const struct staged_column *column, const struct column_rows *rows,
                            struct row_range range) {
    if (column->format.layout != FORMAT_VARIABLE) return (range.end - range.from) * column->format.bytes;
    if (range.from == range.end) return 0;
    return (uint64_t)(rows->offsets[rows->first + range.end] - rows->offsets[rows->first + range.from]);
}

/* Bytes of the column's buffers in a block, with these rows added to its own. */
static uint64_t column_bytes(const struct staged_column *column, const struct column_rows *rows,
                             struct row_range range) {
    const uint64_t count = column->rows + (range.end - range.from);
    uint64_t bytes = column->is_nullable ? supply__aligned(supply__bitmap_bytes(count)) : 0;
    if (column->format.layout == FORMAT_BITS) return bytes + supply__aligned(supply__bitmap_bytes(count));
    if (supply__has_offsets(&column->format)) bytes += supply__aligned((count + 1) * sizeof(int32_t));
    return bytes + supply__aligned(column->data.size + value_bytes(column, rows, range));
}

static bool writer_fits(const struct block_writer *writer, const struct column_rows *rows, uint64_t from,
                        uint64_t end) {
    uint64_t bytes = supply__block_header_bytes(writer->schema->count);
    set_ranges(writer, rows, from, end);
    for (uint32_t i = 0; i < writer->schema->count && bytes <= writer->block_bytes; i++) {
        const struct row_range range = writer->ranges[i];
        if (range.end - range.from > ROWS_MAX - writer->columns[i].rows) return false;
        bytes += column_bytes(&writer->columns[i], &rows[i], range);
    }
    return bytes <= writer->block_bytes;
}

uint64_t supply__block_writer_fit(const struct block_writer *writer, const struct column_rows *rows, uint64_t from,
                                  uint64_t end) {
    if (writer_fits(writer, rows, from, end)) return end - from;
    uint64_t fitting = from, too_many = end;
    while (too_many - fitting > 1) {
        const uint64_t middle = fitting + (too_many - fitting) / 2;
        if (writer_fits(writer, rows, from, middle))
            fitting = middle;
        else
            too_many = middle;
    }
    return fitting - from;
}

uint64_t supply__block_writer_bytes_with(const struct block_writer *writer, const struct column_rows *rows,
                                         uint64_t row) {
    uint64_t bytes = supply__block_header_bytes(writer->schema->count);
    set_ranges(writer, rows, row, row + 1);
    for (uint32_t i = 0; i < writer->schema->count; i++)
        bytes += column_bytes(&writer->columns[i], &rows[i], writer->ranges[i]);
    return bytes;
}

uint64_t supply__block_writer_row_bytes(const struct block_writer *writer, uint32_t entry,
                                        const struct column_rows *rows, uint64_t row) {
    const struct staged_column *staged = &writer->columns[entry];
    set_ranges(writer, rows, row, row + 1);
    const struct row_range range = writer->ranges[entry];
    return staged->format.layout == FORMAT_BITS ? supply__bitmap_bytes(range.end - range.from)
                                                : value_bytes(staged, &rows[entry], range);
}

/* Without rows there may be no offsets, but a block has the first one. */
static bool append_offsets(struct staged_column *column, const struct column_rows *rows, struct row_range range) {
    const bool is_first = column->offsets.size == 0;
    const uint64_t count = range.end - range.from;
    int32_t *to = (int32_t *)buffer_reserve(&column->offsets, (is_first + count) * sizeof *to);
    if (to == NULL) return false;
    if (is_first) *to++ = 0;
    if (count == 0) return true;
    const int32_t *offsets = &rows->offsets[rows->first + range.from];
    const int32_t shift = to[-1] - offsets[0];
    for (uint64_t i = 0; i < count; i++) to[i] = offsets[i + 1] + shift;
    return true;
}

static bool append_values(struct staged_column *column, const struct column_rows *rows, struct row_range range) {
    const uint64_t first = rows->first + range.from;
    if (column->format.layout == FORMAT_BITS)
        return buffer_append_bits(&column->data, column->rows, rows->data, first, range.end - range.from);
    if (supply__has_offsets(&column->format) && !append_offsets(column, rows, range)) return false;
    const size_t bytes = (size_t)value_bytes(column, rows, range);
    if (bytes == 0) return true;
    uint8_t *to = buffer_reserve(&column->data, bytes);
    if (to == NULL) return false;
    const bool is_variable = column->format.layout == FORMAT_VARIABLE;
    memcpy(to, rows->data + (is_variable ? (uint64_t)rows->offsets[first] : first * column->format.bytes), bytes);
    return true;
}

static bool append_column(struct staged_column *column, const struct column_rows *rows, struct row_range range) {
    const uint64_t count = range.end - range.from;
    if (column->is_nullable &&
        !buffer_append_bits(&column->validity, column->rows, rows->validity, rows->first + range.from, count))
        return false;
    if (!append_values(column, rows, range)) return false;
    column->rows += (uint32_t)count;
    return true;
}

bool supply__block_writer_append(struct block_writer *writer, const struct column_rows *rows, uint64_t from,
                                 uint64_t end) {
    set_ranges(writer, rows, from, end);
    for (uint32_t i = 0; i < writer->schema->count; i++)
        if (!append_column(&writer->columns[i], &rows[i], writer->ranges[i])) return false;
    writer->rows += (uint32_t)(end - from);
    return true;
}

/* Adds a buffer and what aligns the next one; empties it. Returns its offset in the block. */
static uint32_t add_piece(struct block_writer *writer, int *count, size_t *end, struct column_buffer *buffer) {
    static const uint8_t padding[BUFFER_ALIGNMENT];
    const size_t at = *end, bytes = buffer->size, padded = supply__aligned(bytes);
    if (bytes > 0) writer->pieces[(*count)++] = (struct iovec){buffer->bytes, bytes};
    if (padded > bytes) writer->pieces[(*count)++] = (struct iovec){(uint8_t *)padding, padded - bytes};
    *end += padded;
    buffer->size = 0;
    return (uint32_t)at;
}

static void lay_out_column(struct block_writer *writer, struct staged_column *column, struct block_column *described,
                           int *count, size_t *end) {
    *described = (struct block_column){0};
    if (column->is_nullable)
        described->null_count = (uint32_t)supply__bits_count_zeros(column->validity.bytes, 0, column->rows);
    if (described->null_count > 0) {
        described->validity_bytes = (uint32_t)column->validity.size;
        described->validity_offset = add_piece(writer, count, end, &column->validity);
    }
    column->validity.size = 0;
    if (supply__has_offsets(&column->format)) {
        described->offsets_bytes = (uint32_t)column->offsets.size;
        described->offsets_offset = add_piece(writer, count, end, &column->offsets);
    }
    described->data_bytes = (uint32_t)column->data.size;
    described->data_offset = add_piece(writer, count, end, &column->data);
    column->rows = 0;
}

int supply__block_writer_lay_out(struct block_writer *writer) {
    struct block_column *described = (struct block_column *)(writer->header + 1);
    size_t end = supply__block_header_bytes(writer->schema->count);
    int count = 0;
    writer->pieces[count++] = (struct iovec){writer->header, end};
    for (uint32_t i = 0; i < writer->schema->count; i++)
        lay_out_column(writer, &writer->columns[i], &described[i], &count, &end);
    writer->header->column_count = writer->schema->count;
    writer->header->notification.element_count = writer->rows;
    writer->header->notification.size = end;
    writer->rows = 0;
    return count;
}
