/** The link to feeders, or to the ranks of a feeder, over an object in Python (supply/mpi.py). */
#pragma once

#include "calls.h"

extern "C" {
#include "feeders/link.h"
}

/** Calls the object. */
class Link : public Calls {
  public:
    explicit Link(nanobind::object calls) : Calls(std::move(calls), "the link between feeders and ranks") {}

    /** The link as the library has it. */
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

    /** A pause between two calls of supply_try_next(), without the interpreter's lock. */
    static void pause();

  private:
    static supply_status_t send(void *context, int to, int tag, const void *buffer, size_t bytes, int *operation,
                                failure *failure);
    static supply_status_t receive(void *context, int from, int tag, void *buffer, size_t bytes, int *operation,
                                   failure *failure);
    static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                     failure *failure);
    static supply_status_t test(void *context, int operation, failure *failure);
    static Link &of(void *context) { return static_cast<Link &>(in(context)); }

    supply_status_t begin(int *operation, failure *failure, const char *name, const Call &call);
};
