/** What other users can do, tried by processes that are theirs. Needs root. */
#ifndef SUPPLY_TEST_USER_PROCESS_H
#define SUPPLY_TEST_USER_PROCESS_H

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace supply_test {

/** Numbers that need no entry in the system's lists. */
struct User {
    uid_t id;                  /**< and the number of the user's own group */
    std::vector<gid_t> groups; /**< that the user is a member of, too */
};

/** A process of that user's that runs a body; killed with its object, unless it has ended. */
class UserProcess {
  public:
    /** What the body returns, or the text of what it throws, is what wait() gives back. */
    UserProcess(const User &user, const std::function<std::string()> &body);
    ~UserProcess();
    UserProcess(const UserProcess &) = delete;
    UserProcess &operator=(const UserProcess &) = delete;

    pid_t pid() const { return pid_; }
    void kill() const;
    /** Waits for the body's text, and throws where it does not come in a minute. */
    std::string wait();

  private:
    pid_t pid_;
    int text_;
};

/** Runs a body as that user; its text. */
inline std::string as_user(const User &user, const std::function<std::string()> &body) {
    return UserProcess(user, body).wait();
}

} // namespace supply_test

#endif
