/** Processes of other users, to test what they can do. Needs root. */
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace supply_test {

/** A user by numbers: needs no entry in /etc/passwd. */
struct User {
    uid_t id;                  /**< also the number of the user's own group */
    std::vector<gid_t> groups; /**< further groups of the user */
};

/** A process of a user that runs a body. The destructor kills it, unless it has ended. */
class UserProcess {
  public:
    /** wait() returns the text that the body returns or throws. */
    UserProcess(const User &user, const std::function<std::string()> &body);
    ~UserProcess();
    UserProcess(const UserProcess &) = delete;
    UserProcess &operator=(const UserProcess &) = delete;

    pid_t pid() const { return pid_; }
    void kill() const;
    /** Waits for the body's text; throws after a minute. */
    std::string wait();

  private:
    pid_t pid_;
    int text_;
};

/** Runs a body as a user, and returns its text. */
inline std::string as_user(const User &user, const std::function<std::string()> &body) {
    return UserProcess(user, body).wait();
}

} // namespace supply_test
