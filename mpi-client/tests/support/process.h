/** Programs that a test runs. */
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace supply_test {

/** How a program ended. */
struct Ended {
    int exit_status = -1; /**< -1: by a signal */
    int signal = 0;
    std::string out, err;
};

/** A running program. The destructor kills it, unless it has ended. */
class Process {
  public:
    /** folder: for its output. environment: "NAME=value", added to the environment of the test. */
    Process(const std::vector<std::string> &command, const std::string &folder,
            const std::vector<std::string> &environment = {});
    ~Process();
    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;

    pid_t pid() const { return pid_; }
    void signal(int number) const;
    /** Its standard output so far. */
    std::string output() const;
    /** Waits until it ends; throws after five minutes. */
    Ended wait();

  private:
    pid_t pid_;
    std::string out_, err_;
};

} // namespace supply_test
