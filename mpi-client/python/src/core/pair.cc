#include "pair.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>

namespace nb = nanobind;

namespace {

/* How long a signal that came to another thread may stay unseen. */
constexpr int kPauseMilliseconds = 100;

const char *set(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

std::string text_of(const supply_position_t &position) {
    char text[SUPPLY_POSITION_TEXT_BYTES];
    supply_position_to_text(&position, text, sizeof text);
    return text;
}

} // namespace

void raise(supply_status_t status, const std::string &text) {
    /* Of a peer's text nobody knows whether it is UTF-8. */
    const nb::object printable =
        nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    nb::module_::import_("supply._errors").attr("raise_status")(supply_status_name(status), printable);
    throw nb::value_error(text.c_str());
}

Pair::Pair(const Options &from) : process_(getpid()) {
    supply_options_t options;
    supply_options_init(&options);
    options.mapped_files = set(from.mapped_files);
    options.named_pipes = set(from.named_pipes);
    options.group = set(from.group);
    options.local_rank = from.local_rank;
    options.rank = from.rank;
    options.timeout = from.timeout;
    options.ring_bytes = from.ring_bytes;
    options.block_bytes = from.block_bytes;
    supply_position_t position;
    if (!from.position.empty()) {
        if (supply_position_from_text(&position, from.position.c_str()) != SUPPLY_OK)
            raise(SUPPLY_ERROR_ARGUMENT, "position '" + from.position + "' is not one that Supply.position has given");
        options.position = &position;
    }
    const supply_status_t status = supply_open(&supply_, &options);
    if (status == SUPPLY_OK) return;
    const std::string text = supply_error(supply_);
    supply_close(supply_);
    supply_ = nullptr;
    raise(status, text);
}

Pair::~Pair() { close(); }

supply_t *Pair::handle() const {
    if (supply_ == nullptr) raise(SUPPLY_ERROR_ARGUMENT, "this supply is closed");
    if (getpid() != process_)
        raise(SUPPLY_ERROR_ARGUMENT, "this supply belongs to process " + std::to_string(process_) +
                                         ", which forked this process, " + std::to_string(getpid()) +
                                         ": read it there (a DataLoader: num_workers=0)");
    return supply_;
}

void Pair::check(supply_status_t status) const {
    if (status < 0) raise(status, supply_error(supply_));
}

supply_status_t Pair::next(supply_block_t &block) {
    for (;;) {
        const supply_status_t status = supply_try_next(handle(), &block);
        check(status);
        if (status != SUPPLY_AGAIN) return status;
        pollfd poller = {supply_fd(supply_), POLLIN, 0};
        const auto since = std::chrono::steady_clock::now();
        {
            nb::gil_scoped_release released;
            poll(&poller, 1, kPauseMilliseconds);
        }
        seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
}

void Pair::release(const supply_block_t &block) noexcept {
    if (supply_ != nullptr && getpid() == process_) supply_release(supply_, &block);
}

std::string Pair::position() const {
    supply_position_t position;
    supply_position_save(handle(), &position);
    return text_of(position);
}

std::string Pair::position_behind(const supply_block_t &block, uint32_t elements) const {
    supply_position_t position;
    if (supply_position_after(handle(), &block, elements, &position) != SUPPLY_OK)
        raise(SUPPLY_ERROR_ARGUMENT, "there is no position behind " + std::to_string(elements) +
                                         " elements of a block of " + std::to_string(block.element_count));
    return text_of(position);
}

/* A forked child has a copy of the handle, whose files are its parent's. */
supply_t *Pair::take() {
    supply_t *const taken = getpid() == process_ ? supply_ : nullptr;
    supply_ = nullptr;
    return taken;
}

void Pair::close() {
    supply_t *const taken = take();
    nb::gil_scoped_release released;
    supply_close(taken);
}

void Pair::abort(const std::string &reason) {
    supply_t *const taken = take();
    nb::gil_scoped_release released;
    supply_abort(taken, reason.c_str());
}
