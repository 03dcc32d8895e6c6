/** A rank's side of a pair, as Python has it. Called with the interpreter's lock, so that one thread at a time is in
 * libsupply. */
#ifndef SUPPLY_PYTHON_PAIR_H
#define SUPPLY_PYTHON_PAIR_H

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "supply_arrow.h"

/** Throws the Python exception of that status. */
[[noreturn]] void raise(supply_status_t status, const std::string &text);

struct Options {
    std::string mapped_files, named_pipes, group, position; /**< "": not set */
    int local_rank, rank;
    double timeout;
    size_t ring_bytes, block_bytes;
};

class Pair {
  public:
    explicit Pair(const Options &options);
    ~Pair();
    Pair(const Pair &) = delete;
    Pair &operator=(const Pair &) = delete;

    /** Waits without the interpreter's lock, so that other threads run, and looks for signals, so that Ctrl-C ends it.
     */
    supply_status_t next(supply_block_t &block);
    supply_t *handle() const; /**< throws where it is closed, or another process's */
    void check(supply_status_t status) const;
    void release(const supply_block_t &block) noexcept;
    std::string position() const;
    std::string position_behind(const supply_block_t &block, uint32_t elements) const;
    void close();
    void abort(const std::string &reason);

    bool is_open() const { return supply_ != nullptr; }
    double seconds_waited() const { return seconds_waited_; }

  private:
    supply_t *take();

    supply_t *supply_ = nullptr;
    const pid_t process_;
    double seconds_waited_ = 0;
};

#endif
