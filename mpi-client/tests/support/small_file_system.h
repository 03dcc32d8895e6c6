/** A test with a tmpfs of 1 MiB. */
#ifndef SUPPLY_TEST_SMALL_FILE_SYSTEM_H
#define SUPPLY_TEST_SMALL_FILE_SYSTEM_H

#include <sys/mount.h>

#include "rank.h"

namespace supply_test {

class SmallFileSystemTest : public RankTest {
  protected:
    void SetUp() override {
        small = folder.file("small");
        std::filesystem::create_directory(small);
        if (mount("supply-test", small.c_str(), "tmpfs", 0, "size=1m") != 0)
            GTEST_SKIP() << "a small tmpfs cannot be mounted: run as root, with CAP_SYS_ADMIN";
        mounted = true;
    }
    void TearDown() override {
        if (mounted) umount(small.c_str());
    }

    bool mounted = false;
    std::string small;
};

} // namespace supply_test

#endif
