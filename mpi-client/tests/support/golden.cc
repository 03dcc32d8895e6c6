#include "golden.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "in_place.h"

extern "C" {
#include "api/handle.h"
}

namespace supply_test {

std::string golden_path(const std::string &name) { return SUPPLY_TEST_GOLDEN "/" + name; }

std::string read_golden(const std::string &name) { return read_file(golden_path(name)); }

void expect_golden(const char *name, const std::string &written) {
    if (getenv("SUPPLY_WRITE_GOLDEN") != nullptr) std::ofstream(golden_path(name), std::ios::binary) << written;
    const std::string golden = read_golden(name);
    ASSERT_EQ(golden.size(), written.size()) << name;
    for (size_t i = 0; i < golden.size(); i++)
        ASSERT_EQ(golden[i], written[i]) << name << ": byte " << i << " (SUPPLY_WRITE_GOLDEN=1 writes it again)";
}

static struct named_path named(const std::string &path) {
    struct named_path named;
    named.path = strdup(path.c_str());
    named.origin = strdup("golden");
    return named;
}

struct settings golden_settings(const PairFiles &files, uint32_t block_count) {
    struct settings settings = {};
    settings.files.mapped_file = named(files.mapped_file);
    settings.files.request_pipe = named(files.request_pipe);
    settings.files.notification_pipe = named(files.notification_pipe);
    settings.results_folder = named(files.mapped_file.substr(0, files.mapped_file.rfind('/')));
    settings.group = NO_GROUP;
    settings.local_rank = 0;
    settings.rank = 1;
    settings.timeout = 60;
    settings.block_bytes = 4096;
    settings.block_count = block_count;
    settings.generation = 0x1122334455667788;
    settings.rank_pid = 4242;
    return settings;
}

/* Copies only the fields that the task writes. */
static void write_as_task(const PairFiles &files, const std::string &mapped) {
    int fd = open(files.mapped_file.c_str(), O_WRONLY | O_CLOEXEC);
    const struct {
        size_t begin, end;
    } ranges[] = {{offsetof(mapped_file_header, published), offsetof(mapped_file_header, rank_failure)},
                  {FOREIGN_FILES_OFFSET, mapped.size()}};
    for (const auto &range : ranges) {
        const auto bytes = static_cast<ssize_t>(range.end - range.begin);
        if (pwrite(fd, mapped.data() + range.begin, range.end - range.begin, static_cast<off_t>(range.begin)) != bytes)
            throw std::runtime_error("cannot write " + files.mapped_file);
    }
    close(fd);
}

std::string foreign_of(const std::string &run) {
    if (run == "task-in-place") return run + ".foreign";
    return run == "task-resident-file" ? run + ".resident" : "";
}

void place_foreign_file(const TemporaryFolder &folder, const std::string &name, const std::string &contents,
                        std::string &mapped) {
    const foreign_file entry = entry_of(folder.write(name, contents));
    mapped.replace(FOREIGN_FILES_OFFSET, sizeof entry, reinterpret_cast<const char *>(&entry), sizeof entry);
}

Handle replay(const PairFiles &files, const std::string &task_mapped, const std::string &task_notifications) {
    Handle handle(static_cast<supply_t *>(calloc(1, sizeof(struct supply))));
    uint32_t block_count;
    memcpy(&block_count, task_mapped.data() + offsetof(mapped_file_header, block_count), sizeof block_count);
    struct settings settings = golden_settings(files, block_count);
    if (supply__open_settings(handle.get(), &settings) != SUPPLY_OK)
        throw std::runtime_error(supply_error(handle.get()));
    write_as_task(files, task_mapped);
    int fd = open(files.notification_pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    for (size_t at = 0; at < task_notifications.size(); at += sizeof(notification))
        if (write(fd, task_notifications.data() + at, sizeof(notification)) != sizeof(notification))
            throw std::runtime_error("cannot write " + files.notification_pipe);
    close(fd);
    return handle;
}

} // namespace supply_test
