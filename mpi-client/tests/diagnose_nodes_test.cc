// What supply-doctor says of memory nodes, for machines as the kernel describes them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "rank.h"
#include "temporary_folder.h"

extern "C" {
#include "diagnose_machine.h"
}

namespace supply_test {
namespace {

std::string diagnosis_of(const TemporaryFolder &machine) {
    char *text = nullptr;
    size_t bytes = 0;
    struct diagnosis diagnosis = {};
    diagnosis.stream = open_memstream(&text, &bytes);
    diagnose_nodes(&diagnosis, machine.path().c_str());
    fclose(diagnosis.stream);
    EXPECT_EQ(0u, diagnosis.warnings + diagnosis.failed);
    const std::string said(text);
    free(text);
    return said;
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
