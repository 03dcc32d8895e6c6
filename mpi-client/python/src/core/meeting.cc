#include "meeting.h"

#include <nanobind/stl/string.h>

#include <cstdio>

#include "pair.h"

extern "C" {
#include "feeders/feeder.h"
#include "feeders/remote.h"
}

namespace nb = nanobind;

namespace {

/* As supply-feeder. */
void print(const char *line) { fprintf(stderr, "supply-feeder: %s\n", line); }

const char *set(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

} // namespace

Meeting::Meeting(nb::object calls, bool is_feeder, const std::string &node, double seconds)
    : link_(std::make_shared<Calls>(std::move(calls), "the link between feeders and ranks")),
      functions_(link_->functions()) {
    failure failure = {};
    supply_status_t status;
    {
        const Calls::Waiting waiting(*link_);
        nb::gil_scoped_release released;
        // The link raises what a signal handler raises.
        const wait_limit limit = {seconds, {}};
        status = remote_meet(&processes_, &functions_, is_feeder, node.c_str(), &limit, &failure);
    }
    if (status != SUPPLY_OK) {
        functions_.free(functions_.context, true);
        remote_processes_free(&processes_);
        link_->throw_interruption();
        raise(status, failure.text, failure.error);
    }
    is_pending_ = false;
    feeders_ = processes_.feeders;
    for (int i = 0; i < processes_.count; i++)
        if (processes_.list[i].is_feeder == 0) ranks_.push_back(i);
}

Meeting::~Meeting() {
    if (functions_.context == nullptr) return;
    functions_.free(functions_.context, is_pending_);
    if (!is_pending_) remote_processes_free(&processes_);
}

void Meeting::check_unused() const {
    if (functions_.context == nullptr || is_pending_)
        raise(SUPPLY_ERROR_ARGUMENT, "the feeders of this job have opened their pairs before, and can do so once");
}

supply_status_t Meeting::open(supply_t **supply, const supply_options_t &options) {
    check_unused();
    const struct ::transport taken = functions_;
    functions_.context = nullptr;
    supply_status_t status;
    {
        const Calls::Waiting waiting(*link_);
        nb::gil_scoped_release released;
        status = supply__remote_over(supply, &taken, &processes_, &options);
    }
    try {
        link_->throw_interruption();
    } catch (...) {
        supply_abort(*supply, "the program interrupted the opening");
        throw;
    }
    return status;
}

nb::tuple Meeting::feed(const std::string &mapped_files, const std::string &named_pipes, const std::string &group) {
    check_unused();
    is_pending_ = true;
    supply_options_t options;
    supply_options_init(&options);
    options.mapped_files = set(mapped_files);
    options.named_pipes = set(named_pipes);
    options.group = set(group);
    fed fed = {};
    failure failure = {};
    supply_status_t status;
    {
        const Calls::Waiting waiting(*link_);
        nb::gil_scoped_release released;
        status = supply__feed_over(&functions_, &processes_, &options, print, &fed, &failure);
    }
    link_->throw_interruption();
    if (status != SUPPLY_OK) raise(status, failure.text, failure.error);
    is_pending_ = false;
    const pair_range pairs = remote_own_pairs(&processes_);
    return nb::make_tuple(fed.elements, fed.bytes, fed.failed, pairs.count, pairs.first);
}
