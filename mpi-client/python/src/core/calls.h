/** What the library's calls of Python objects share: of an exchange's transport, and of a link to feeders. */
#ifndef SUPPLY_PYTHON_CALLS_H
#define SUPPLY_PYTHON_CALLS_H

#include <nanobind/nanobind.h>

#include <string>

#include "supply.h"

struct failure;

/** A memoryview of the library's memory. Writable also for what is sent: PyTorch warns of memory that is not. */
nanobind::object view(const void *address, size_t bytes);

/** The library's failure for an exception. what: of which the operation is, as "the exchange between ranks". */
supply_status_t fail_by_exception(failure *failure, const char *what, const char *operation,
                                  const nanobind::python_error &error);

/** What Python finds true. */
bool is_true(const nanobind::object &object);

#endif
