/** Forked children of a test. */
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace supply_test {

/** Runs a body in a child, which exits with the body's result. Returns the status of waitpid(). */
inline int run_forked(const std::function<int()> &body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    return status;
}

} // namespace supply_test
