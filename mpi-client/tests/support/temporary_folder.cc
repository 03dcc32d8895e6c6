#include "temporary_folder.h"

#include <stdlib.h>
#include <unistd.h>

#include <iterator>
#include <stdexcept>

namespace supply_test {

TemporaryFolder::TemporaryFolder() {
    const char *parent = getenv("TMPDIR");
    if (parent == nullptr) parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string pattern = std::string(parent) + "/supply-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + pattern);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string &name, const std::string &content) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream stream(file(name), std::ios::binary);
    stream << content;
    if (!stream.flush()) throw std::runtime_error("cannot write " + file(name));
    return file(name);
}

std::string read_file(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

} // namespace supply_test
