// A rank that was suspended past its time limit takes what came meanwhile. Built with fail points.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "environment.h"
#include "rank.h"

namespace supply_test {
namespace {

class SuspendedTest : public RankTest {
  protected:
    SuspendedTest() { options.timeout = 0.2; }

    /** A child that opens the pair and ends with 0 if `receive` returns SUPPLY_OK. */
    pid_t start(supply_status_t receive(supply_t *supply)) {
        const pid_t child = fork();
        if (child != 0) return child;
        supply_t *supply = nullptr;
        supply_status_t status = supply_open(&supply, &options);
        if (status == SUPPLY_OK) status = receive(supply);
        _exit(-status);
    }

    /** The child stops at its fail point, before a block comes, and continues after its time limit. */
    void expect_received(pid_t child) {
        Task task(files);
        int status = 0;
        ASSERT_EQ(child, waitpid(child, &status, WUNTRACED));
        ASSERT_TRUE(WIFSTOPPED(status)) << "ended with " << WEXITSTATUS(status);
        supply_datums(task, 0, 1);
        std::this_thread::sleep_for(std::chrono::duration<double>(2 * options.timeout));
        kill(child, SIGCONT);
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status) << supply_status_name(static_cast<supply_status_t>(-WEXITSTATUS(status)));
    }

    const std::string fail_point = folder.write("fail-point", "R0:stop\n");
    EnvironmentVariable environment{"SUPPLY_FAIL_POINT", fail_point.c_str()};
};

TEST_F(SuspendedTest, WaitingForABlock) {
    expect_received(start([](supply_t *supply) {
        supply_block_t block;
        return supply_next(supply, &block);
    }));
}

TEST_F(SuspendedTest, WaitingForADatum) {
    expect_received(start([](supply_t *supply) {
        supply_datum_t datum;
        return supply_next_datum(supply, &datum);
    }));
}

} // namespace
} // namespace supply_test
