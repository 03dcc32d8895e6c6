// supply_mpi.h under a real launcher.
#include "mpirun.h"
#include "process.h"
#include "rank.h"

namespace supply_test {
namespace {

TEST(MpiTest, RanksAndLocalRanksComeFromTheCommunicator) {
    TemporaryFolder folder;
    const Ended ended = Process(mpirun(2, {SUPPLY_TEST_RANKS_OF_NODE}), folder.path()).wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(
        says(ended.out, {"world 0: code=0 rank=0 local_rank=0\n", "world 1: code=0 rank=1 local_rank=1\n",
                         "reversed 0: code=0 rank=1 local_rank=1\n", "reversed 1: code=0 rank=0 local_rank=0\n"}));
}

} // namespace
} // namespace supply_test
