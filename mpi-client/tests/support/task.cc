#include "task.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace supply_test {

namespace {

[[noreturn]] void throw_errno(const std::string &what) {
    throw std::system_error(errno, std::generic_category(), what);
}

bool lock_is_held(int fd, off_t byte) {
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_start = byte;
    lock.l_len = 1;
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) throw_errno("F_OFD_GETLK");
    return lock.l_type != F_UNLCK;
}

} // namespace

void wait_until(const char *what, bool (*condition)(void *), void *context) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (!condition(context)) {
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error(std::string("timed out waiting for: ") + what);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

void Task::open_mapped_file(const std::string &path) {
    wait_until("the rank's mapped file", [&] {
        if (mapped_fd_ < 0) mapped_fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
        uint32_t version = 0;
        return mapped_fd_ >= 0 && pread(mapped_fd_, &version, sizeof version, 8) == sizeof version && version != 0;
    });
    struct stat entry;
    if (fstat(mapped_fd_, &entry) != 0) throw_errno(path);
    /* Of a reader that is not the first, only header and schema are there. */
    if (pread(mapped_fd_, &mapping_bytes_, 8, offsetof(mapped_file_header, file_bytes)) != 8) throw_errno(path);
    file_bytes_ = static_cast<size_t>(entry.st_size);
    void *address = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, mapped_fd_, 0);
    if (address == MAP_FAILED) throw_errno(path);
    mapping_ = static_cast<uint8_t *>(address);
}

Task::Task(const PairFiles &files, uint32_t attempt, Task *ring) : ring_(ring) {
    open_mapped_file(files.mapped_file); // A1
    if (memcmp(header().magic, MAGIC, 8) != 0 || header().version != VERSION ||
        file_bytes_ != (header().reader > 0 ? RING_OFFSET : mapping_bytes_))
        throw std::runtime_error("the rank's header is wrong");
    if (!lock_is_held(mapped_fd_, RANK_LOCK_BYTE)) throw std::runtime_error("the rank does not hold its lock"); // A2
    struct flock lock = {};                                                                                     // A3
    lock.l_type = F_WRLCK;
    lock.l_start = TASK_LOCK_BYTE;
    lock.l_len = 1;
    if (fcntl(mapped_fd_, F_OFD_SETLK, &lock) != 0) throw_errno("the task's lock");
    request_fd_ = open(files.request_pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); // A4
    notification_fd_ = open(files.notification_pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (request_fd_ < 0 || notification_fd_ < 0) throw_errno("the pipes");
    header().task_pid = static_cast<uint32_t>(getpid()); // A5
    header().task_attempt = attempt;
    header().attachments++;
    if (ring_ != nullptr) __atomic_store_n(&header().published, ring_->published(), __ATOMIC_RELEASE);
    for (sequence_ = released(); sequence_ < published(); sequence_++) {
        notification copy;
        memcpy(&copy, slot(sequence_), sizeof copy);
        notify(copy);
    }
}

Task::~Task() {
    if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
    for (int fd : {request_fd_, notification_fd_, mapped_fd_})
        if (fd >= 0) close(fd);
}

uint64_t Task::published() { return __atomic_load_n(&header().published, __ATOMIC_ACQUIRE); }

uint64_t Task::released() { return __atomic_load_n(&header().released, __ATOMIC_ACQUIRE); }

void Task::write_after_ring(const std::string &bytes) {
    if (pwrite(mapped_fd_, bytes.data(), bytes.size(), static_cast<off_t>(mapping_bytes_)) !=
        static_cast<ssize_t>(bytes.size()))
        throw_errno("a wide schema");
}

void Task::write_schema(const std::vector<schema_entry> &entries, const std::string &texts) {
    if (header().schema_columns != 0) return;
    const std::string bytes(reinterpret_cast<const char *>(entries.data()), entries.size() * sizeof(schema_entry));
    if (entries.size() > SCHEMA_COLUMNS_MAX || !texts.empty()) {
        write_after_ring(bytes + texts);
        header().schema_bytes = static_cast<uint32_t>(bytes.size() + texts.size());
    } else {
        memcpy(mapping_ + SCHEMA_OFFSET, bytes.data(), bytes.size());
    }
    __atomic_store_n(&header().schema_columns, static_cast<uint32_t>(entries.size()), __ATOMIC_RELEASE);
}

uint32_t Task::add_foreign_file(const foreign_file &added) {
    const uint32_t number = header().foreign_count + 1;
    entry(number) = added;
    __atomic_store_n(&header().foreign_count, number, __ATOMIC_RELEASE);
    return number;
}

notification Task::next(uint32_t kind, uint32_t element_count, size_t size) {
    notification next = {};
    next.generation = header().generation;
    next.kind = kind;
    next.element_count = element_count;
    next.sequence = sequence_;
    next.offset = header().ring_offset + sequence_ % header().block_count * header().block_bytes;
    next.size = size;
    return next;
}

void Task::wait_for_credit() {
    wait_until("credit", [&] { return sequence_ < released() + header().block_count; });
}

void Task::write(const std::vector<uint8_t> &block, const notification &notification) {
    if (block.size() > header().block_bytes) throw std::runtime_error("the test's block is larger than a slot");
    memcpy(slot(sequence_), block.data(), block.size());
    memcpy(slot(sequence_), &notification, sizeof notification);
}

void Task::publish() { __atomic_store_n(&header().published, ++sequence_, __ATOMIC_RELEASE); }

void Task::notify(const notification &notification) {
    if (::write(notification_fd_, &notification, sizeof notification) != sizeof notification)
        throw_errno("the notification pipe");
}

void Task::supply(const BlockImage &block, const notification &notification) {
    wait_for_credit();
    write(block.bytes, notification);
    publish();
    notify(notification);
}

void Task::supply(const BlockImage &block, uint32_t epoch, uint32_t partition, uint64_t first_element) {
    notification notification = next(block);
    notification.epoch = epoch;
    notification.partition = partition;
    notification.first_element = first_element;
    supply(block, notification);
}

void Task::end(uint32_t kind, uint32_t epoch) {
    notification notification = next(kind, 0, sizeof(block_header));
    notification.epoch = epoch;
    supply_header(notification);
}

void Task::write_header(const notification &notification) {
    write(std::vector<uint8_t>(sizeof(block_header)), notification);
}

void Task::supply_header(const notification &notification) {
    wait_for_credit();
    write_header(notification);
    publish();
    notify(notification);
}

notification Task::next_in_file(uint32_t file, const notification &in_file, uint32_t epoch) {
    notification next = in_file;
    next.generation = header().generation;
    next.sequence = sequence_;
    next.epoch = epoch;
    next.file = file;
    return next;
}

void Task::end_of_epoch(uint32_t epoch) { end(NOTIFICATION_END_OF_EPOCH, epoch); }

void Task::end_of_data(uint32_t epoch) { end(NOTIFICATION_END_OF_DATA, epoch); }

void Task::see_end() {
    wait_until("the rank's last release", [&] { return released() == published(); });
    __atomic_store_n(&header().end_seen, 1u, __ATOMIC_RELEASE);
}

void Task::send_failure(const std::string &text) {
    char (&field)[sizeof header().task_failure] = header().task_failure;
    memset(field, 0, sizeof field);
    text.copy(field, sizeof field); // a text that fills the field has no zero byte, which a test needs
    notification failure = {};
    failure.generation = header().generation;
    failure.kind = NOTIFICATION_FAILURE;
    notify(failure);
}

std::vector<request> Task::requests() {
    std::vector<request> requests;
    request request;
    while (read(request_fd_, &request, sizeof request) == sizeof request) requests.push_back(request);
    return requests;
}

bool Task::rank_has_left() {
    struct pollfd poller = {request_fd_, POLLIN, 0};
    return poll(&poller, 1, 0) == 1 && (poller.revents & POLLHUP) != 0 && (poller.revents & POLLIN) == 0;
}

} // namespace supply_test
