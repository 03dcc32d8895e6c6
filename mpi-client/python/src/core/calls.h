/** A transport (mpi/transport.h) over an object in Python, for an exchange. */
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <string>

extern "C" {
#include "mpi/transport.h"
}

/** Calls the methods of a Python object. The library may call it without the interpreter's lock, one thread at a time.
 */
class Calls : public std::enable_shared_from_this<Calls> {
  public:
    /** what: the object is, for texts. */
    Calls(nanobind::object object, const char *what);
    Calls(const Calls &) = delete;
    Calls &operator=(const Calls &) = delete;

    /** The transport as the library has it. It keeps this object until free(). */
    struct ::transport functions();

    /** on_end() of the transport: when the interpreter ends, no thread of the library may wait for its lock; and the
     * object may know an earlier end. */
    static void on_end(void *context, void (*end)(void *argument), void *argument);

    /** While it lives, a call of the library waits: what a signal handler raises ends it as a failure. */
    class Waiting {
      public:
        explicit Waiting(Calls &calls) : calls_(calls) { calls.is_waiting_ = true; }
        ~Waiting() { calls_.is_waiting_ = false; }
        Waiting(const Waiting &) = delete;
        Waiting &operator=(const Waiting &) = delete;

      private:
        Calls &calls_;
    };

    /** A pause between two calls of supply_try_next(), without the interpreter's lock. It grows if nothing happens. */
    void pause();

    /** Throws what a signal handler has raised while the library called the object. */
    void throw_interruption();

  private:
    using Call = std::function<nanobind::object(const nanobind::object &)>;

    static Calls &in(void *context) { return **static_cast<std::shared_ptr<Calls> *>(context); }
    static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                     failure *failure);
    static supply_status_t alltoall(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                    failure *failure);
    static supply_status_t alltoallv(void *context, const void *send, const part *send_parts, void *receive,
                                     const part *receive_parts, int *operation, failure *failure);
    static supply_status_t test(void *context, int operation, failure *failure);
    static supply_status_t split(void *context, const int *of, int ranks, int rank, struct ::transport *part,
                                 failure *failure);
    /** Closes the object, or never frees it if an operation is pending, which may still use it. */
    static void free(void *context, bool pending);

    supply_status_t begin(failure *failure, const char *name, int *operation, const Call &call);
    nanobind::object view_of(const void *start, const part *parts) const;
    nanobind::list tuples(const part *parts) const;
    supply_status_t fail(failure *failure, const char *operation, const nanobind::python_error &error);
    void keep_interruption(nanobind::python_error &&error);

    /** Which has split this one off, or this one: it keeps what a signal handler has raised. */
    Calls &whole() { return whole_ ? *whole_ : *this; }

    nanobind::object object_;
    const char *const what_;
    std::shared_ptr<Calls> whole_;
    const int rank_, ranks_;
    const bool splits_;
    const bool any_thread_;
    nanobind::object end_; /**< what the interpreter calls at its end; empty: nothing */
    /** Whether a call of the library waits: what a signal handler raises ends it as a failure. */
    bool is_waiting_ = false;
    unsigned yields_ = 0, pause_microseconds_ = 0;
    std::unique_ptr<nanobind::python_error> interruption_;
};
