// Each routine of libsupply_linalg on matrices that are hard for it (check_routines.cc), on several ranks.
#include <cstdlib>

#include "mpirun.h"
#include "process.h"
#include "rank.h"
#include "temporary_folder.h"

namespace supply_test {
namespace {

void check(int ranks) {
    TemporaryFolder folder;
    // Otherwise two ranks keep both cores of a busy machine while they wait for each other.
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    const Ended ended = Process(mpirun(ranks, {SUPPLY_TEST_CHECK_ROUTINES, SUPPLY_TEST_LINALG}), folder.path()).wait();
    EXPECT_EQ(0, ended.exit_status) << ended.out << ended.err;
    if (ended.out.find("no SLEPc") != std::string::npos)
        GTEST_SKIP() << "all but lanczos and eigenvalues has passed: they need SLEPc (make packages-offload)";
}

TEST(RoutinesTest, OneRank) { check(1); }

TEST(RoutinesTest, TwoRanks) { check(2); }

TEST(RoutinesTest, FourRanksWithFewOrNoRows) { check(4); }

} // namespace
} // namespace supply_test
