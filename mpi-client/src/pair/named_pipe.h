/** The rank's ends of the two named pipes: records of fixed size. Nothing here blocks. */
#ifndef SUPPLY_NAMED_PIPE_H
#define SUPPLY_NAMED_PIPE_H

#include <stddef.h>
#include <stdint.h>

#include "files/claimed_file.h"

/** Result of reading a record. */
enum pipe_read {
    PIPE_RECORD,
    PIPE_EMPTY,
    PIPE_FAILED,
};

/** Whether there is something to read. */
bool supply__pipe_has_data(const struct claimed_file *pipe);

/** Reads one record from a claimed pipe. */
enum pipe_read supply__pipe_read(struct claimed_file *pipe, void *record, size_t bytes, struct failure *failure);

/** Writes one record into a claimed pipe. False: the pipe is full. */
bool supply__pipe_write(const struct claimed_file *pipe, const void *record, size_t bytes);

/** As supply__pipe_write(), but if the pipe is full it first removes what the peer has not read. */
bool supply__pipe_write_over(const struct claimed_file *pipe, const void *record, size_t bytes);

#endif
