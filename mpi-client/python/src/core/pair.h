/** The rank's side of a pair for Python. With the interpreter's lock, one thread at a time uses the handle. */
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "exchange.h"
#include "schema.h"
#include "supply_arrow.h"

extern "C" {
#include "base/opener.h"
}

/** Throws the Python exception of that status. error_number: errno of a system call that failed, or 0. */
[[noreturn]] void raise(supply_status_t status, const std::string &text, int error_number = 0);

/** The process that has opened something. A forked child has only a copy of it. */
class Opener {
  public:
    Opener() : mark_(supply__opener_mark()) {
        if (mark_ == nullptr) raise(SUPPLY_ERROR_MEMORY, "out of memory");
    }
    ~Opener() { supply__opener_free(mark_); }
    Opener(const Opener &) = delete;
    Opener &operator=(const Opener &) = delete;

    bool is_this_process() const { return *mark_; }
    /** Throws in another process. thing: what it has opened. use: what its process does with it. */
    void check(const char *thing, const char *use) const;

  private:
    bool *const mark_;
    const pid_t process_ = getpid();
};

/** A capsule of the Arrow PyCapsule interface. A consumer that takes the structure out of it sets release to NULL. */
template <typename Structure>
nanobind::object capsule(std::unique_ptr<Structure> structure, const char *name) {
    PyObject *made = PyCapsule_New(structure.get(), name, [](PyObject *object) {
        auto *held = static_cast<Structure *>(PyCapsule_GetPointer(object, PyCapsule_GetName(object)));
        if (held->release != nullptr) held->release(held);
        delete held;
    });
    if (made == nullptr) {
        structure->release(structure.get());
        throw nanobind::python_error();
    }
    structure.release();
    return nanobind::steal(made);
}

struct Options {
    std::string mapped_files, named_pipes, group, position, results_folder; /**< "": not set */
    int local_rank, rank;
    double timeout;
    size_t ring_bytes, block_bytes;
    bool exchange;               /**< the program will call Pair::exchange() */
    int reader = 0, readers = 0; /**< of a ring that several ranks read; 0 readers: not set */
    std::string connect, key;    /**< of a rank elsewhere; "": not set */
    int ranks = 0;               /**< of the job; 0: not set */

    /** Those of libsupply, which points into this struct. Without the position. */
    supply_options_t passed() const;
};

/** While it lives, what this thread waits for in libsupply ends with Ctrl-C. Other waits are short, or end by
 * themselves. */
class LongWait {
  public:
    LongWait() { is_here = true; }
    ~LongWait() { is_here = false; }
    LongWait(const LongWait &) = delete;
    LongWait &operator=(const LongWait &) = delete;

    /** As supply_options_t.interrupted: whether a handler of a signal has raised something. */
    static bool is_interrupted(void *);

  private:
    static inline thread_local bool is_here = false;
};

class Pair {
  public:
    /**
     * If it cannot be opened it throws, or with options.exchange the call of exchange() does, after all ranks know.
     */
    explicit Pair(const Options &options);
    ~Pair() { finish(); }
    Pair(const Pair &) = delete;
    Pair &operator=(const Pair &) = delete;

    /** From now on the blocks have elements of all ranks. Collective; afterwards a failed pair can only be closed. */
    void exchange(nanobind::object transport, const ExchangeOptions &options);

    /**
     * Waits for the next block. Other Python threads run meanwhile, and a signal handler that raises ends the wait. The
     * timeout starts again when a task leaves; with `once` it does not, and SUPPLY_AGAIN says that it has passed.
     */
    supply_status_t next(supply_block_t &block, bool once);
    /** As next(), but SUPPLY_AGAIN if there is nothing yet. The time until the next call is then no wait. */
    supply_status_t next_now(supply_block_t &block);
    supply_t *handle() const; /**< throws if it is closed or belongs to another process */
    void check(int status) const;
    /** The number of columns. Throws before a task has attached. */
    int column_count();
    void release(const supply_block_t &block) noexcept;
    nanobind::object arrow_schema();
    /** (elements, steps) of a whole epoch, or None. */
    nanobind::object counts() const;
    /** Both are empty if there is no position: of a block that an exchange has delivered long ago. */
    std::string position() const;
    std::string position_after(const supply_block_t &block, uint32_t elements) const;

    /** A rank elsewhere writes results: its task stays until they are kept. */
    void hold_end();
    /** Ends the wait of a rank elsewhere with that text, in any thread. A closed pair has none. */
    void fail(const std::string &text) noexcept;

    /** A signal handler that raises ends the wait, and leaves the pair open. */
    void close();
    void abort(const std::string &reason);
    /** Closes without an exception; does not wait if a signal has ended close() before. */
    void finish();
    /** In a forked child: closes its copies of the pair's descriptors. */
    void abandon_in_child();

    bool is_open() const { return supply_ != nullptr; }
    /** Of the blocks; empty before a task has attached. */
    const Schema &schema();
    const std::shared_ptr<References> &references() const { return references_; }

  private:
    /** The longest time that a signal to another thread stays unnoticed. */
    static constexpr int kPauseMilliseconds = 100;

    [[noreturn]] void raise_open_failure();
    supply_t *take();
    /** While another thread is in a call that runs Python code, waits for its end. */
    void await_receiver();
    supply_status_t close_within(double seconds, char *text);
    supply_status_t ask(supply_block_t &block);
    supply_status_t try_next(supply_block_t &block);
    void pause();
    /** Throws what a signal handler has raised. */
    void throw_interruption();

    class Receiving;

    supply_t *supply_ = nullptr;
    supply_status_t open_status_ = SUPPLY_OK;
    Schema schema_;
    const std::shared_ptr<References> references_ = std::make_shared<References>();
    const Opener opener_;
    bool close_interrupted_ = false;
    std::shared_ptr<Calls> exchange_; /**< with other ranks */
    /* The thread in supply_try_next(). An exchange runs Python code there, and so may let other threads run. */
    std::thread::id receiver_;
    std::vector<supply_block_t> released_meanwhile_;
};
