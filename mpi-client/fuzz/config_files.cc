// mapped-files.conf and named-pipes.conf: the input is their two texts, with "---" between them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "fuzzed_pair.h"

extern "C" {
#include "files/config_files.h"
}

using supply_fuzz::found;

namespace {

/** A file in memory, overwritten by each input. */
class File {
  public:
    File() : fd_(memfd_create("config", MFD_CLOEXEC)) {
        if (fd_ < 0) found("memfd_create failed");
        path = "/proc/self/fd/" + std::to_string(fd_);
    }
    void write(const char *text, size_t size) const {
        if (ftruncate(fd_, 0) != 0 || pwrite(fd_, text, size, 0) != static_cast<ssize_t>(size)) found("pwrite failed");
    }
    std::string path;

  private:
    int fd_;
};

void check(const named_path &named) {
    if (named.path[0] != '/' || strpbrk(named.path, " \t\r\n\v\f#") != nullptr) found("an invalid path");
    if (strstr(named.origin, "/proc/self/fd/") != named.origin) found("an invalid origin");
}

void check(const config_line &line) {
    check(line.mapped_file);
    check(line.request_pipe);
    check(line.notification_pipe);
    if ((line.ring_bytes > INT64_MAX && line.ring_bytes != RING_AUTO) || line.block_bytes > INT64_MAX)
        found("a size that is too large");
    if (line.group != nullptr && line.group[0] == '\0') found("a group without a name");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const File mapped_files, named_pipes;
    const auto *text = reinterpret_cast<const char *>(data);
    const void *separator = memmem(text, size, "---", 3);
    const size_t first = separator ? static_cast<size_t>(static_cast<const char *>(separator) - text) : size;
    mapped_files.write(text, first);
    if (separator)
        named_pipes.write(text + first + 3, size - first - 3);
    else
        named_pipes.write("", 0);

    config_lines lines;
    failure failure = {};
    const supply_status_t status =
        supply__config_read(mapped_files.path.c_str(), named_pipes.path.c_str(), &lines, &failure);
    if (status == SUPPLY_OK)
        for (size_t i = 0; i < lines.count; i++) check(lines.lines[i]);
    else if (status != SUPPLY_ERROR_CONFIG || strstr(failure.text, "/proc/self/fd/") == nullptr)
        found("a failure that names no file");
    supply__config_free(&lines);
    return 0;
}
