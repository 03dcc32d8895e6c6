/** A temporary folder of a test, in shared memory if there is any. The destructor removes it. */
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace supply_test {

class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;

    std::string path() const { return path_; }
    std::string file(const std::string &name) const { return path_ + "/" + name; }

    /** Writes a file, in folders that it makes, and returns its path. */
    std::string write(const std::string &name, const std::string &content) const;

    /** True if no file is left in it. */
    bool is_empty() const { return std::filesystem::is_empty(path_); }

  private:
    std::string path_;
};

std::string read_file(const std::string &path);

} // namespace supply_test
