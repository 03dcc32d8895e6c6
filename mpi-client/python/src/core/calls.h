/** What the library's calls of Python objects share: of an exchange's transport, and of a link to feeders. */
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <string>

#include "supply.h"

struct failure;

/** A memoryview of the library's memory. Writable also for what is sent: PyTorch warns of memory that is not. */
nanobind::object view(const void *address, size_t bytes);

/** Calls the methods of a Python object. The library may call it without the interpreter's lock. */
class Calls : public std::enable_shared_from_this<Calls> {
  public:
    /** what: the object is, for texts. */
    Calls(nanobind::object object, const char *what) : object_(std::move(object)), what_(what) {}
    Calls(const Calls &) = delete;
    Calls &operator=(const Calls &) = delete;

    /** Throws what a signal handler has raised while the library called the object. */
    void throw_interruption();

    /** The text of the last failure; empty: there was none. */
    const std::string &failure_text() const { return failure_text_; }

  protected:
    using Call = std::function<nanobind::object(const nanobind::object &)>;

    /** The context of the library's functions. It keeps this object until free(). */
    void *context() { return new std::shared_ptr<Calls>(shared_from_this()); }
    static Calls &in(void *context) { return **static_cast<std::shared_ptr<Calls> *>(context); }
    /** Closes the object, or never frees it if an operation is pending, which may still use it. */
    static void free(void *context, bool pending);

    /** Begins an operation. number: gets what the call returns, if it is not NULL. */
    supply_status_t begin(failure *failure, const char *operation, const Call &call, int *number = nullptr);
    /** SUPPLY_OK if the call returns something true, else SUPPLY_AGAIN. */
    supply_status_t ask(failure *failure, const char *operation, const Call &call);

    nanobind::object object_;
    /** Whether a call of the library waits: what a signal handler raises ends it as a failure. */
    bool is_waiting_ = false;

  private:
    supply_status_t fail(failure *failure, const char *operation, const nanobind::python_error &error);
    void keep_interruption(nanobind::python_error &&error);

    const char *const what_;
    std::string failure_text_;
    std::unique_ptr<nanobind::python_error> interruption_;
};
