// What supply-doctor says of memory nodes, for machines as the kernel describes them.
#include <gtest/gtest.h>

#include "diagnosis_of.h"
#include "rank.h"
#include "temporary_folder.h"

extern "C" {
#include "diagnose_machine.h"
}

namespace supply_test {
namespace {

std::string diagnosis_of(const TemporaryFolder &machine) {
    return supply_test::diagnosis_of([&](struct diagnosis *diagnosis) {
        diagnose_nodes(diagnosis, machine.path().c_str());
        EXPECT_EQ(0u, diagnosis->warnings + diagnosis->failed);
    });
}

TEST(DiagnoseNodesTest, OnlySeveralNodesNeedAdvice) {
    TemporaryFolder machine;
    EXPECT_TRUE(says(diagnosis_of(machine), {"skipped", "numa", machine.path().c_str()}));
    machine.write("has_cpu", "0\n");
    EXPECT_TRUE(says(diagnosis_of(machine), {"ok", "numa", "one memory node"}));
    machine.write("has_cpu", "0-1\n");
    EXPECT_TRUE(says(diagnosis_of(machine), {"ok", "numa", "memory nodes 0-1", "--bind-to numa"}));
    machine.write("has_cpu", "0,2\n");
    EXPECT_TRUE(says(diagnosis_of(machine), {"memory nodes 0,2"}));
}

} // namespace
} // namespace supply_test
