/** A tmpfs of 1 MiB, and a test with one. */
#pragma once

#include <sys/mount.h>

#include "rank.h"

namespace supply_test {

class SmallFileSystem {
  public:
    static constexpr const char *needs = "a small tmpfs cannot be mounted: run as root, with CAP_SYS_ADMIN";

    /** Mounts it on that folder, if this process may. */
    explicit SmallFileSystem(std::string path) : path_(std::move(path)) {
        std::filesystem::create_directory(path_);
        is_mounted_ = mount("supply-test", path_.c_str(), "tmpfs", 0, "size=1m") == 0;
    }
    ~SmallFileSystem() {
        if (is_mounted_) umount(path_.c_str());
    }
    SmallFileSystem(const SmallFileSystem &) = delete;
    SmallFileSystem &operator=(const SmallFileSystem &) = delete;

    bool is_mounted() const { return is_mounted_; }

  private:
    std::string path_;
    bool is_mounted_;
};

class SmallFileSystemTest : public RankTest {
  protected:
    void SetUp() override {
        if (!file_system.is_mounted()) GTEST_SKIP() << SmallFileSystem::needs;
    }

    std::string small = folder.file("small");
    SmallFileSystem file_system{small};
};

} // namespace supply_test
