/** The two named pipes as the rank has them: records of fixed size, nothing ever blocks but a wait with a deadline. */
#ifndef SUPPLY_NAMED_PIPE_H
#define SUPPLY_NAMED_PIPE_H

#include <stddef.h>
#include <stdint.h>

#include "claimed_file.h"

/** What reading a record came to. */
enum pipe_read {
    PIPE_RECORD,
    PIPE_EMPTY,
    PIPE_WRITER_LEFT, /**< said once for each writer that has been there and left; everything it wrote has been read */
    PIPE_FAILED,
};

/**
 * Turns a claimed pipe into a reader: its only descriptor is then read-only (else the rank itself would be a
 * writer, and never see its task leave) and keeps the pipe locked. SUPPLY_OK, or _SYSTEM.
 */
supply_status_t supply_pipe_become_reader(struct claimed_file *pipe, struct failure *failure);

/** Reads one record from a reader. */
enum pipe_read supply_pipe_read(struct claimed_file *pipe, void *record, size_t bytes, struct failure *failure);

/** Waits until there may be something to read. 1: there may be; 0: the deadline (supply_clock) has passed; -1: errno.
 */
int supply_pipe_wait(const struct claimed_file *pipe, int64_t deadline);

/** Writes one record into a claimed pipe. True if it went in; false if the pipe is full. */
bool supply_pipe_write(const struct claimed_file *pipe, const void *record, size_t bytes);

/** As supply_pipe_write(), but makes room by taking out what the peer has not read. */
bool supply_pipe_write_over(const struct claimed_file *pipe, const void *record, size_t bytes);

#endif
