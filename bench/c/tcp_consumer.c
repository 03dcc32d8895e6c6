/** The consumer of the TCP alternatives. TcpBaseline.scala writes the elements in this form. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "messages.h"
#include "consumer.h"

/** Stands in front of each element. data_bytes END_OF_ROUND stands alone. */
struct frame {
    uint32_t data_bytes, key_bytes;
    int32_t label, channels, height, width, encoded;
};

enum { BUFFER_BYTES = 8 << 20 };
#define END_OF_ROUND UINT32_MAX

struct stream {
    int socket;
    char *buffer;
    size_t start, end; /* of the bytes that are received and not yet read */
};

/* Takes all whole elements of the buffer. */
static void take_elements(struct stream *stream, struct consumer *consumer) {
    struct frame frame;
    while (stream->end - stream->start >= sizeof frame) {
        memcpy(&frame, stream->buffer + stream->start, sizeof frame);
        if (frame.data_bytes == END_OF_ROUND) {
            stream->start += sizeof frame;
            consumer_end_round(consumer);
            acknowledge_round(stream->socket);
            continue;
        }
        const size_t whole = sizeof frame + frame.key_bytes + (size_t)frame.data_bytes;
        if (whole > BUFFER_BYTES) die("an element of %u bytes is larger than the buffer", frame.data_bytes);
        if (stream->end - stream->start < whole) return;
        consumer_take(consumer, stream->buffer + stream->start + sizeof frame + frame.key_bytes, frame.data_bytes);
        stream->start += whole;
    }
}

int main(void) {
    messages_from("bench-tcp");
    struct stream stream = {.buffer = malloc(BUFFER_BYTES)};
    struct consumer consumer = {0};
    if (stream.buffer == NULL) die("no memory for a buffer of %d bytes", BUFFER_BYTES);
    stream.socket = accept_sender();
    size_t received;
    do {
        /* Move the rest of an element to the front only when little space is left after it. */
        if (stream.start > 0 && (stream.start == stream.end || stream.end > BUFFER_BYTES / 2)) {
            memmove(stream.buffer, stream.buffer + stream.start, stream.end - stream.start);
            stream.end -= stream.start;
            stream.start = 0;
        }
        received = receive_some(stream.socket, stream.buffer + stream.end, BUFFER_BYTES - stream.end);
        stream.end += received;
        take_elements(&stream, &consumer);
    } while (received > 0);
    consumer_print(&consumer);
    free(stream.buffer);
    return 0;
}
