// ring=auto: from the kernel's description of caches to the size of a ring.
#include <gtest/gtest.h>

#include <vector>

#include "temporary_folder.h"

extern "C" {
#include "files/options.h"
}

namespace supply_test {
namespace {

struct Cache {
    const char *level, *type, *size, *processors;
};

struct Machine {
    const char *name;
    std::vector<Cache> caches;
    uint64_t ring_bytes;
};

uint64_t ring_of(const Machine &machine) {
    TemporaryFolder folder;
    for (size_t i = 0; i < machine.caches.size(); i++) {
        const Cache &cache = machine.caches[i];
        const std::string name = "index" + std::to_string(i);
        std::filesystem::create_directory(folder.file(name));
        folder.write(name + "/level", std::string(cache.level) + "\n");
        folder.write(name + "/type", std::string(cache.type) + "\n");
        folder.write(name + "/size", std::string(cache.size) + "\n");
        folder.write(name + "/shared_cpu_list", std::string(cache.processors) + "\n");
    }
    return supply__ring_for_caches(folder.path().c_str());
}

TEST(CachesTest, ARingFitsThePairsShareAndNotTheTasksOwnCache) {
    const uint64_t MiB = 1 << 20;
    const Machine machines[] = {
        {"a large share", {{"2", "Unified", "2048K", "0"}, {"3", "Unified", "491520K", "0-1"}}, 16 * MiB},
        {"a share of 6 MiB", {{"2", "Unified", "1024K", "0,16"}, {"3", "Unified", "98304K", "0-15,16-31"}}, 6 * MiB},
        {"a last cache that one processor has alone",
         {{"2", "Unified", "1024K", "0"}, {"3", "Unified", "6144K", "0"}},
         6 * MiB},
        {"a small share", {{"2", "Unified", "256K", "0"}, {"3", "Unified", "16384K", "0-15"}}, 4 * MiB},
        {"an own cache above the share", {{"2", "Unified", "4096K", "0"}, {"3", "Unified", "8192K", "0-7"}}, 8 * MiB},
        {"no third cache", {{"1", "Data", "32K", "0"}, {"2", "Unified", "512K", "0-3"}}, 4 * MiB},
        {"instructions do not count", {{"2", "Instruction", "65536K", "0"}}, 0},
        {"nothing that is known", {{"3", "Unified", "8192K", ""}}, 0},
        {"no description", {}, 0},
    };
    for (const Machine &machine : machines) EXPECT_EQ(machine.ring_bytes, ring_of(machine)) << machine.name;
}

} // namespace
} // namespace supply_test
