/**
 * A receiver of rows that RowSockets.scala sends. It stores them as a matrix, as a worker of Alchemist does. At the end
 * it prints the rows and the sum of the last matrix as JSON.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "messages.h"

enum { BUFFER_BYTES = 1 << 20 };
#define END UINT64_MAX

/* In front of a partition: round and partition; the round END stands alone. In front of a row: its number and its
 * length; END after the last one. */
struct header {
    uint64_t first, second;
};

struct stream {
    int socket;
    size_t start, end; /* of the bytes that are received and not yet taken */
    char buffer[BUFFER_BYTES];
};

struct matrix {
    uint64_t round;
    uint64_t rows;
    double *values;
    size_t count, capacity;
};

/* False: the sender has closed the socket. */
static bool take(struct stream *stream, void *to, size_t bytes) {
    for (size_t taken = 0; taken < bytes;) {
        if (stream->start == stream->end) {
            stream->start = 0;
            stream->end = receive_some(stream->socket, stream->buffer, BUFFER_BYTES);
            if (stream->end == 0) return false;
        }
        const size_t held = stream->end - stream->start, some = held < bytes - taken ? held : bytes - taken;
        memcpy((char *)to + taken, stream->buffer + stream->start, some);
        stream->start += some;
        taken += some;
    }
    return true;
}

static double *add(struct matrix *matrix, size_t count) {
    if (matrix->count + count > matrix->capacity) {
        matrix->capacity += matrix->capacity / 2 + count;
        matrix->values = realloc(matrix->values, matrix->capacity * sizeof(double));
        if (matrix->values == NULL) die("no memory for %zu numbers", matrix->capacity);
    }
    matrix->count += count;
    return matrix->values + matrix->count - count;
}

static void begin(struct matrix *matrix, uint64_t round) {
    if (matrix->round == round) return;
    free(matrix->values);
    *matrix = (struct matrix){.round = round};
}

/* False: the sender asks for the end. */
static bool take_partition(struct stream *stream, struct matrix *matrix) {
    struct header header;
    if (!take(stream, &header, sizeof header)) die("the sender has gone before its first row");
    if (header.first == END) return false;
    begin(matrix, header.first);
    for (uint64_t expected = 0;; expected++) {
        if (!take(stream, &header, sizeof header) || header.first != expected)
            die("row %" PRIu64 " has not come", expected);
        if (header.second == END) break;
        if (!take(stream, add(matrix, header.second), header.second * sizeof(double))) die("a row was cut");
        matrix->rows++;
    }
    acknowledge_round(stream->socket);
    return true;
}

int main(void) {
    messages_from("bench-rows");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct stream *stream = malloc(sizeof *stream);
    if (stream == NULL) die("no memory for a buffer");
    struct matrix matrix = {0};
    const int listener = listen_to_senders();
    bool more = true;
    while (more) {
        stream->socket = accept(listener, NULL, NULL);
        if (stream->socket < 0) die("accept: %m");
        stream->start = stream->end = 0;
        more = take_partition(stream, &matrix);
        close(stream->socket);
    }
    double sum = 0;
    for (size_t i = 0; i < matrix.count; i++) sum += matrix.values[i];
    printf("{\"rows\": %" PRIu64 ", \"sum\": %.17g}\n", matrix.rows, sum);
    free(matrix.values);
    free(stream);
    return 0;
}
