/**
 * The rest of an epoch through the Arrow C Stream Interface. The thread that uses the handle uses the stream; the
 * stream outlives a handle that is closed, and then fails.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/handle.h"
#include "supply_arrow.h"

struct stream {
    struct exports *exports;
    bool has_block; /* received, and not returned by get_next yet */
    bool has_ended;
    supply_block_t block;
    char error[sizeof((struct failure *)0)->text];
};

static int error_number(const supply_t *supply, supply_status_t status) {
    switch (status) {
        case SUPPLY_ERROR_TIMEOUT:
            return ETIMEDOUT;
        case SUPPLY_ERROR_MEMORY:
            return ENOMEM;
        case SUPPLY_INTERRUPTED:
            return EINTR;
        case SUPPLY_ERROR_ARGUMENT:
            return EINVAL;
        case SUPPLY_ERROR_SYSTEM:
            return supply_error_errno(supply) != 0 ? supply_error_errno(supply) : EIO;
        default:
            return EIO;
    }
}

/* The errno of that status, 0 for SUPPLY_OK, and its text for get_last_error. */
static int stream_finish(struct stream *stream, supply_status_t status) {
    const supply_t *supply = stream->exports->supply;
    const char *text = status == SUPPLY_INTERRUPTED ? "interrupted" : supply_error(supply);
    if (status == SUPPLY_OK) return 0;
    supply__copy_line(stream->error, sizeof stream->error, text, sizeof stream->error);
    return error_number(supply, status);
}

static int fail_by_close(struct stream *stream) {
    static const char text[] = "the handle of this stream is closed";
    supply__copy_line(stream->error, sizeof stream->error, text, sizeof text);
    return EINVAL;
}

/* Receives the next block, unless there is one or the epoch has ended. */
static supply_status_t stream_receive(struct stream *stream) {
    if (stream->has_block || stream->has_ended) return SUPPLY_OK;
    const supply_status_t status = supply_next(stream->exports->supply, &stream->block);
    stream->has_block = status == SUPPLY_OK;
    stream->has_ended = status == SUPPLY_END_OF_EPOCH || status == SUPPLY_END_OF_DATA;
    return stream->has_ended ? SUPPLY_OK : status;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *schema) {
    struct stream *stream = self->private_data;
    supply_t *supply = stream->exports->supply;
    if (supply == NULL) return fail_by_close(stream);
    supply_status_t status = supply_export_arrow(supply, NULL, SUPPLY_ALL_COLUMNS, schema, NULL);
    if (status == SUPPLY_ERROR_NO_SCHEMA && (status = stream_receive(stream)) == SUPPLY_OK)
        status = supply_export_arrow(supply, NULL, SUPPLY_ALL_COLUMNS, schema, NULL);
    return stream_finish(stream, status);
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *array) {
    struct stream *stream = self->private_data;
    supply_t *supply = stream->exports->supply;
    if (supply == NULL) return fail_by_close(stream);
    supply_status_t status = stream_receive(stream);
    if (status != SUPPLY_OK) return stream_finish(stream, status);
    array->release = NULL; /* the end, unless there is a block */
    if (!stream->has_block) return 0;
    status = supply_export_arrow(supply, &stream->block, SUPPLY_ALL_COLUMNS, NULL, array);
    if (status != SUPPLY_OK) return stream_finish(stream, status);
    stream->has_block = false;
    return stream_finish(stream, supply_release(supply, &stream->block));
}

static const char *get_last_error(struct ArrowArrayStream *self) {
    const struct stream *stream = self->private_data;
    return stream->error[0] != '\0' ? stream->error : NULL;
}

static void stream_release(struct ArrowArrayStream *self) {
    struct stream *stream = self->private_data;
    struct exports *exports = stream->exports;
    if (stream->has_block && *exports->is_mine && exports->supply != NULL)
        supply_release(exports->supply, &stream->block);
    supply__exports_drop(exports);
    free(stream);
    self->release = NULL;
}

supply_status_t supply_export_stream(supply_t *supply, struct ArrowArrayStream *to) {
    TRY(supply__check_open(supply));
    if (to == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_ARGUMENT, "supply_export_stream: stream must not be NULL");
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return supply__fail(&supply->failure, SUPPLY_ERROR_MEMORY, "supply_export_stream: out of memory");
    stream->exports = supply->exports;
    supply__exports_add(stream->exports);
    *to = (struct ArrowArrayStream){.get_schema = get_schema,
                                    .get_next = get_next,
                                    .get_last_error = get_last_error,
                                    .release = stream_release,
                                    .private_data = stream};
    return SUPPLY_OK;
}
