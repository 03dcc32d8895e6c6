#include "pair.h"

#include <nanobind/stl/string.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

extern "C" {
#include "api/filler.h"
}

namespace nb = nanobind;

namespace {

const char *set(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

std::string text_of(const supply_position_t &position) {
    char text[SUPPLY_POSITION_TEXT_BYTES];
    supply_position_to_text(&position, text, sizeof text);
    return text;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

} // namespace

void raise(supply_status_t status, const std::string &text, int error_number) {
    /* A peer's text may be something else than UTF-8. */
    const nb::object printable =
        nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    nb::module_::import_("spark_supplier.errors")
        .attr("raise_status")(supply_status_name(status), printable, error_number);
    throw nb::value_error(text.c_str());
}

supply_options_t Options::passed() const {
    supply_options_t options;
    supply_options_init(&options);
    options.mapped_files = set(mapped_files);
    options.named_pipes = set(named_pipes);
    options.group = set(group);
    options.results_folder = set(results_folder);
    options.local_rank = local_rank;
    options.rank = rank;
    options.timeout = timeout;
    options.ring_bytes = ring_bytes;
    options.block_bytes = block_bytes;
    options.exchange = exchange;
    options.reader = reader;
    options.readers = readers;
    options.connect = set(connect);
    options.key = set(key);
    options.ranks = ranks;
    return options;
}

void Opener::check(const char *thing, const char *use) const {
    if (is_this_process()) return;
    raise(SUPPLY_ERROR_ARGUMENT, std::string("this ") + thing + " belongs to process " + std::to_string(process_) +
                                     ", which forked this process, " + std::to_string(getpid()) + ": " + use +
                                     " it there (in a DataLoader: num_workers=0)");
}

Pair::Pair(const Options &from) {
    supply_options_t options = from.passed();
    supply_position_t position;
    if (!from.position.empty()) {
        if (supply_position_from_text(&position, from.position.c_str()) != SUPPLY_OK)
            raise(SUPPLY_ERROR_ARGUMENT, "position '" + from.position + "' does not come from Reader.position");
        options.position = &position;
    }
    /* A reader waits for the first one of its group. */
    options.interrupted = &LongWait::is_interrupted;
    {
        const LongWait wait;
        nb::gil_scoped_release released;
        open_status_ = supply_open(&supply_, &options);
    }
    if (open_status_ == SUPPLY_INTERRUPTED) {
        supply_close(supply_);
        throw nb::python_error();
    }
    /* The other ranks wait for this one, and must learn why it fails: exchange() says it to them. */
    if (open_status_ != SUPPLY_OK && !from.exchange) raise_open_failure();
}

bool LongWait::is_interrupted(void *) {
    if (!is_here) return false;
    nb::gil_scoped_acquire acquired;
    return PyErr_CheckSignals() != 0;
}

void Pair::raise_open_failure() {
    const std::string text = supply_error(supply_);
    const int error_number = supply_error_errno(supply_);
    supply_close(supply_);
    supply_ = nullptr;
    raise(open_status_, text, error_number);
}

supply_t *Pair::handle() const {
    opener_.check("supply", "read");
    if (supply_ == nullptr) raise(SUPPLY_ERROR_ARGUMENT, "this supply is closed");
    return supply_;
}

void Pair::check(int status) const {
    if (status < 0) raise(static_cast<supply_status_t>(status), supply_error(supply_), supply_error_errno(supply_));
}

void Pair::exchange(nb::object transport, const ExchangeOptions &options) {
    handle();
    exchange_ = std::make_shared<Calls>(std::move(transport), "the exchange between ranks");
    supply_t *taken = take();
    supply_status_t status;
    {
        nb::gil_scoped_release released;
        status = open_exchange(*exchange_, &taken, options);
    }
    supply_ = taken;
    exchange_->throw_interruption();
    if (open_status_ != SUPPLY_OK) raise_open_failure();
    check(status);
}

supply_status_t Pair::next(supply_block_t &block, bool once) {
    const double limit = (exchange_ != nullptr ? FILLER_LIMIT_FACTOR : 1) * supply__timeout(handle());
    double end = std::numeric_limits<double>::infinity();
    /* The pauses let libsupply's own limit pass first, which raises if no task has shown life. */
    if (once) end = now() + limit + 2 * kPauseMilliseconds / 1e3;
    for (;;) {
        const supply_status_t status = ask(block);
        if (status != SUPPLY_AGAIN) return status;
        if (now() >= end) break;
        pause();
    }
    if (exchange_ != nullptr)
        raise(SUPPLY_ERROR_TIMEOUT, "the other ranks have not received the end of the data within " +
                                        std::to_string(std::lround(limit)) + " s (--timeout / SUPPLY_TIMEOUT)");
    return SUPPLY_AGAIN;
}

supply_status_t Pair::next_now(supply_block_t &block) {
    const supply_status_t status = ask(block);
    if (status == SUPPLY_AGAIN) supply__pause_wait(supply_);
    return status;
}

supply_status_t Pair::ask(supply_block_t &block) {
    /* What a signal handler has raised while a call returned something else. */
    throw_interruption();
    const supply_status_t status = try_next(block);
    if (status < 0) throw_interruption();
    check(status);
    return status;
}

/** While it lives, other threads find that this one is in supply_try_next(), and leave their releases to it. */
class Pair::Receiving {
  public:
    Receiving(Pair &pair, supply_t *supply) : pair_(pair), supply_(supply) {
        pair.receiver_ = std::this_thread::get_id();
    }
    ~Receiving() {
        pair_.receiver_ = std::thread::id();
        for (const supply_block_t &released : pair_.released_meanwhile_) supply_release(supply_, &released);
        pair_.released_meanwhile_.clear();
    }
    Receiving(const Receiving &) = delete;
    Receiving &operator=(const Receiving &) = delete;

  private:
    Pair &pair_;
    supply_t *const supply_;
};

supply_status_t Pair::try_next(supply_block_t &block) {
    supply_t *const supply = handle();
    if (receiver_ != std::thread::id())
        raise(SUPPLY_ERROR_ARGUMENT, "another thread waits for the next block of this supply");
    const Receiving receiving(*this, supply);
    /* The exchange's thread may have the exchange, and wait for the interpreter's lock. */
    std::optional<nb::gil_scoped_release> released;
    if (exchange_ != nullptr) released.emplace();
    return supply_try_next(supply, &block);
}

void Pair::pause() {
    /* No descriptor reports other ranks, for which an exchange waits. */
    if (exchange_ != nullptr) return exchange_->pause();
    pollfd poller = {supply_fd(supply_), POLLIN, 0};
    nb::gil_scoped_release released;
    poll(&poller, 1, kPauseMilliseconds);
}

void Pair::throw_interruption() {
    if (exchange_ != nullptr) exchange_->throw_interruption();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void Pair::release(const supply_block_t &block) noexcept {
    if (supply_ == nullptr || !opener_.is_this_process()) return;
    if (receiver_ == std::thread::id())
        supply_release(supply_, &block);
    else
        released_meanwhile_.push_back(block);
}

int Pair::column_count() {
    const int count = supply_column_count(handle());
    check(count);
    return count;
}

const Schema &Pair::schema() {
    supply_t *const supply = handle();
    if (!schema_.empty()) return schema_;
    const int count = column_count();
    supply_field_t field;
    for (int i = 0; i < count; i++) {
        check(supply_field(supply, i, &field));
        schema_.add(supply, i, field);
    }
    return schema_;
}

nb::object Pair::arrow_schema() {
    column_count();
    auto schema = std::make_unique<ArrowSchema>();
    check(supply_export_arrow(handle(), nullptr, SUPPLY_ALL_COLUMNS, schema.get(), nullptr));
    return capsule(std::move(schema), "arrow_schema");
}

nb::object Pair::counts() const {
    supply_counts_t counts;
    const supply_status_t status = supply_counts(handle(), &counts);
    check(status);
    if (status != SUPPLY_OK) return nb::none();
    return nb::make_tuple(counts.epoch_elements, counts.epoch_steps);
}

std::string Pair::position() const {
    supply_position_t position;
    return supply_position_save(handle(), &position) == SUPPLY_OK ? text_of(position) : "";
}

std::string Pair::position_after(const supply_block_t &block, uint32_t elements) const {
    supply_position_t position;
    if (supply_position_after(handle(), &block, elements, &position) == SUPPLY_OK) return text_of(position);
    if (elements > block.element_count)
        raise(SUPPLY_ERROR_ARGUMENT, "there is no position after " + std::to_string(elements) +
                                         " elements of a block of " + std::to_string(block.element_count));
    return "";
}

namespace nb = nanobind;

void Pair::await_receiver() {
    while (receiver_ != std::thread::id() && opener_.is_this_process()) {
        if (receiver_ == std::this_thread::get_id())
            raise(SUPPLY_ERROR_ARGUMENT, "this supply waits for other processes, and cannot be closed by a signal "
                                         "handler: let the handler raise an exception");
        pause();
    }
}

void Pair::hold_end() { supply__hold_end(handle()); }

void Pair::fail(const std::string &text) noexcept {
    if (supply_ != nullptr && opener_.is_this_process()) supply__fail_link(supply_, text.c_str());
}

/* While a call runs without the interpreter's lock, other threads must find the pair closed. */
supply_t *Pair::take() {
    await_receiver();
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
