/** The link to feeders, or to the ranks of a feeder, over an object in Python (supply/mpi.py). */
#ifndef SUPPLY_PYTHON_FEEDER_LINK_H
#define SUPPLY_PYTHON_FEEDER_LINK_H

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "supply.h"

extern "C" {
#include "feeders/link.h"
}

/** Calls the object. The library may call it without the interpreter's lock. */
class Link : public std::enable_shared_from_this<Link> {
  public:
    explicit Link(nanobind::object calls) : calls_(std::move(calls)) {}

    /** The link as the library has it. It keeps this object until its free(). */
    struct ::link functions();

    /** While it lives, a call of the library waits: what a signal handler raises ends it as a failure of the link. */
    class Waiting {
      public:
        explicit Waiting(Link &link) : link_(link) { link.is_waiting_ = true; }
        ~Waiting() { link_.is_waiting_ = false; }
        Waiting(const Waiting &) = delete;
        Waiting &operator=(const Waiting &) = delete;

      private:
        Link &link_;
    };

    /** Throws what a signal handler has raised while the library called the object. */
    void throw_interruption();

    /** A pause between two calls of supply_try_next(), without the interpreter's lock. */
    static void pause();

    /** The text of the last failure; empty: there was none. */
    const std::string &failure_text() const { return failure_text_; }

  private:
    static supply_status_t send(void *context, int to, int tag, const void *buffer, size_t bytes, int *operation,
                                failure *failure);
    static supply_status_t receive(void *context, int from, int tag, void *buffer, size_t bytes, int *operation,
                                   failure *failure);
    static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                     failure *failure);
    static supply_status_t test(void *context, int operation, failure *failure);
    static void free(void *context, bool pending);

    template <typename Begin>
    supply_status_t begin(int *operation, failure *failure, const char *name, Begin begin);
    supply_status_t fail(failure *failure, const char *name, const nanobind::python_error &error);
    supply_status_t test(int operation, failure *failure);
    void keep_interruption(nanobind::python_error &&error);

    nanobind::object calls_;
    bool is_waiting_ = false;
    std::string failure_text_;
    std::unique_ptr<nanobind::python_error> interruption_;
};

#endif
