/** The processes of a communicator, and what each of them does next: a rank opens its pairs, a feeder feeds them. */
#pragma once

#include <vector>

#include "calls.h"

extern "C" {
#include "feeders/processes.h"
}

class Meeting {
  public:
    /** remote_meet(). Throws if it fails, or if a signal handler raises. */
    Meeting(nanobind::object calls, bool is_feeder, const std::string &node, double seconds);
    ~Meeting();
    Meeting(const Meeting &) = delete;
    Meeting &operator=(const Meeting &) = delete;

    uint32_t feeders() const { return feeders_; }
    /** Numbers of the ranks in the communicator. */
    const std::vector<int> &ranks() const { return ranks_; }

    /** supply__remote_over(), once. Throws what a signal handler raises, after it has closed the pairs. */
    supply_status_t open(supply_t **supply, const supply_options_t &options);

    /**
     * supply__feed_over(), once: (elements, bytes, pairs that failed, pairs, the first pair). Prints why pairs failed.
     * Throws if the call fails, or if a signal handler raises.
     */
    nanobind::tuple feed(const std::string &mapped_files, const std::string &named_pipes, const std::string &group);

    const std::shared_ptr<Calls> &link() const { return link_; }

  private:
    void check_unused() const;

    const std::shared_ptr<Calls> link_;
    struct ::transport functions_;
    processes processes_ = {};
    uint32_t feeders_ = 0;
    std::vector<int> ranks_;
    bool is_pending_ = true; /**< operations may be under way */
};
