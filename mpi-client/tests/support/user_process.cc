#include "user_process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace supply_test {

namespace {

void become(const User &user) {
    if (setgroups(user.groups.size(), user.groups.data()) != 0 || setresgid(user.id, user.id, user.id) != 0 ||
        setresuid(user.id, user.id, user.id) != 0)
        throw std::runtime_error(std::string("cannot become another user: ") + strerror(errno));
}

std::string text_of(const User &user, const std::function<std::string()> &body) {
    try {
        become(user);
        return body();
    } catch (const std::exception &exception) {
        return std::string("thrown: ") + exception.what();
    }
}

} // namespace

UserProcess::UserProcess(const User &user, const std::function<std::string()> &body) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
        const std::string text = text_of(user, body);
        _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    text_ = ends[0];
}

UserProcess::~UserProcess() {
    if (text_ < 0) return;
    kill();
    waitpid(pid_, nullptr, 0);
    close(text_);
}

void UserProcess::kill() const { ::kill(pid_, SIGKILL); }

std::string UserProcess::wait() {
    std::string text;
    for (;;) {
        struct pollfd poller = {text_, POLLIN, 0};
        if (poll(&poller, 1, 60000) != 1)
            throw std::runtime_error("timed out waiting for the text of another user's process");
        char part[4096];
        const ssize_t bytes = read(text_, part, sizeof part);
        if (bytes <= 0) break;
        text.append(part, static_cast<size_t>(bytes));
    }
    waitpid(pid_, nullptr, 0);
    close(text_);
    text_ = -1;
    return text;
}

} // namespace supply_test
