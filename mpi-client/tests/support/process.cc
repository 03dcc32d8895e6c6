#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <stdexcept>

#include "task.h"
#include "temporary_folder.h"

namespace supply_test {

namespace {

std::vector<char *> pointers(const std::vector<std::string> &texts) {
    std::vector<char *> pointers;
    for (const std::string &text : texts) pointers.push_back(const_cast<char *>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string> &added) {
    std::vector<std::string> all = added;
    for (char **variable = environ; *variable != nullptr; variable++) all.push_back(*variable);
    return all;
}

} // namespace

Process::Process(const std::vector<std::string> &command, const std::string &folder,
                 const std::vector<std::string> &environment) {
    static int number;
    const std::string name = folder + "/process-" + std::to_string(number++);
    out_ = name + ".out";
    err_ = name + ".err";
    /* By qemu, posix_spawn() returns before the child has opened its files. */
    std::ofstream{out_};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const std::vector<std::string> variables = environment_with(environment);
    int error = posix_spawnp(&pid_, command[0].c_str(), &actions, nullptr, pointers(command).data(),
                             pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error(command[0] + ": " + strerror(error));
}

Process::~Process() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { kill(pid_, number); }

std::string Process::output() const { return read_file(out_); }

Ended Process::wait() {
    int status;
    wait_until("the end of a program", [&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
    pid_ = -1;
    Ended ended;
    if (WIFEXITED(status)) ended.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.out = read_file(out_);
    ended.err = read_file(err_);
    return ended;
}

} // namespace supply_test
