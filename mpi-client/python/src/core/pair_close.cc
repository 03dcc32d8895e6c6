// The end of a pair.
#include "pair.h"

#include <cerrno>
#include <limits>

namespace nb = nanobind;

void Pair::await_receiver(const char *purpose) {
    while (receiver_ != std::thread::id() && opener_.is_this_process()) {
        if (receiver_ == std::this_thread::get_id())
            raise(SUPPLY_ERROR_ARGUMENT, std::string("this supply waits for other processes, and ") + purpose +
                                             ": let the handler raise an exception");
        pause();
    }
}

/* While a call runs without the interpreter's lock, other threads must find the pair closed. */
supply_t *Pair::take() {
    await_receiver("cannot be closed by a signal handler");
    supply_t *const taken = opener_.is_this_process() ? supply_ : nullptr;
    supply_ = nullptr;
    return taken;
}

/* SUPPLY_AGAIN: the pair is still open. */
supply_status_t Pair::close_within(double seconds, char *text) {
    supply_t *const taken = take();
    supply_status_t status;
    {
        nb::gil_scoped_release released;
        status = supply_close_within(taken, seconds, text);
    }
    if (status == SUPPLY_AGAIN) supply_ = taken;
    return status;
}

void Pair::close() {
    char text[SUPPLY_TEXT_BYTES];
    supply_status_t status;
    do {
        close_interrupted_ = true;
        throw_interruption();
        close_interrupted_ = false;
        status = close_within(kPauseMilliseconds / 1e3, text);
    } while (status == SUPPLY_AGAIN);
    const int error_number = errno;
    if (status == SUPPLY_ERROR_SYSTEM && link_ != nullptr)
        raise(status, link_->failure_text().empty() ? "a feeder could not close its pair: see its output"
                                                    : link_->failure_text());
    if (status < 0) raise(status, text, status == SUPPLY_ERROR_SYSTEM ? error_number : 0);
}

void Pair::abort(const std::string &reason) {
    supply_t *const taken = take();
    nb::gil_scoped_release released;
    supply_abort(taken, reason.c_str());
}

void Pair::finish() {
    if (close_interrupted_)
        abort("close() was interrupted");
    else
        close_within(std::numeric_limits<double>::infinity(), nullptr);
}

void Pair::abandon_in_child() {
    supply_abandon_in_child(supply_);
    supply_ = nullptr;
}
