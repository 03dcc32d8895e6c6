#include "link_task.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

extern "C" {
#include "net/proof.h"
}

namespace supply_test {
namespace {

constexpr int kMilliseconds = 300000;

template <typename Struct>
std::string bytes_of(const Struct &value) {
    return {reinterpret_cast<const char *>(&value), sizeof value};
}

std::string digest(const std::string &text) {
    uint8_t made[DIGEST_BYTES];
    supply__sha256(text.data(), text.size(), made);
    return {reinterpret_cast<const char *>(made), sizeof made};
}

std::string proof(const std::string &key, const std::string &who, const std::string &one, const std::string &other) {
    const proof_part parts[] = {{who.data(), who.size()}, {one.data(), one.size()}, {other.data(), other.size()}};
    uint8_t made[DIGEST_BYTES];
    supply__proof(reinterpret_cast<const uint8_t *>(key.data()), parts, 3, made);
    return {reinterpret_cast<const char *>(made), sizeof made};
}

} // namespace

void LinkEnd::cut() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
}

void LinkEnd::end_writing() { shutdown(fd_, SHUT_WR); }

std::string LinkEnd::read(size_t bytes) {
    std::string found;
    while (found.size() < bytes) {
        char part[65536];
        pollfd poller = {fd_, POLLIN, 0};
        const ssize_t got =
            poll(&poller, 1, kMilliseconds) == 1 ? ::read(fd_, part, std::min(sizeof part, bytes - found.size())) : 0;
        if (got <= 0) throw std::runtime_error("the rank's connection has ended");
        found.append(part, static_cast<size_t>(got));
    }
    return found;
}

void LinkEnd::write(const std::string &bytes) {
    for (size_t at = 0; at < bytes.size();) {
        const ssize_t put = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (put <= 0) throw std::runtime_error("the rank takes nothing");
        at += static_cast<size_t>(put);
    }
}

bool LinkEnd::has_ended() {
    try {
        for (;;) read(1);
    } catch (const std::runtime_error &) {
        return true;
    }
}

LinkTask::LinkTask(std::string key) : key_(digest(key)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof name;
    // What a rank sends waits at the rank until the test reads.
    const int buffer = 65536;
    setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (bind(listener_, reinterpret_cast<sockaddr *>(&name), bytes) != 0 || listen(listener_, 16) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr *>(&name), &bytes) != 0)
        throw std::runtime_error("no socket");
    port_ = ntohs(name.sin_port);
}

LinkTask::~LinkTask() { close(listener_); }

std::string LinkTask::address(const std::string &run) const { return "supply://" + place() + "/" + run; }

std::string LinkTask::place() const { return "127.0.0.1:" + std::to_string(port_); }

LinkEnd LinkTask::accept(int role) {
    pollfd poller = {listener_, POLLIN, 0};
    if (poll(&poller, 1, patience) != 1) throw std::runtime_error("no rank has connected");
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), at_once = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    LinkEnd end(fd);
    const std::string head = end.read(11);
    if (head.substr(0, 8) != "SUPPLYH1" || head[8] != role) throw std::runtime_error("another role");
    end.read(static_cast<size_t>(head[10]));
    const std::string theirs = end.read(32), own = digest(theirs);
    end.write('\0' + own);
    if (end.read(32) != proof(key_, "peer", own, theirs)) {
        end.cut();
        return end;
    }
    end.write(proof(key_, "hub", theirs, own));
    return end;
}

std::string LinkTask::answer_of(int kind, const std::string &text) {
    std::string answer(1, static_cast<char>(kind));
    answer += static_cast<char>(text.size() >> 8);
    answer += static_cast<char>(text.size() & 0xff);
    return answer + text;
}

std::string LinkTask::answer(int kind, const std::string &text) {
    LinkEnd hub = accept(3);
    hub.read(8);
    std::string question;
    for (int i = 0; i < 2; i++) {
        const std::string length = hub.read(2);
        question += hub.read(static_cast<uint8_t>(length[0]) << 8 | static_cast<uint8_t>(length[1])) + "\n";
    }
    hub.write(answer_of(kind, text));
    return question;
}

LinkEnd LinkTask::meet(mapped_file_header *open) {
    answer(0, place());
    LinkEnd end = accept(4);
    const Request first = request(end);
    if (first.head.kind != LINK_OPEN) throw std::runtime_error("the rank does not begin with LINK_OPEN");
    if (open != nullptr) first.payload.copy(reinterpret_cast<char *>(open), sizeof *open);
    notice(end, LINK_ACCEPTED);
    return end;
}

Request LinkTask::request(LinkEnd &end) {
    Request found = {end.read<link_request>(), ""};
    found.payload = end.read(found.head.payload_bytes);
    return found;
}

Request LinkTask::request(LinkEnd &end, uint32_t kind) {
    for (;;) {
        Request found = request(end);
        if (found.head.kind == kind) return found;
        if (found.head.kind != LINK_CREDIT) throw std::runtime_error("a request of another kind");
    }
}

void LinkTask::notice(LinkEnd &end, uint32_t kind, const std::string &payload) {
    end.write(bytes_of(link_notice{kind, static_cast<uint32_t>(payload.size())}) + payload);
}

void LinkTask::send_schema(LinkEnd &end, mapped_file_header header, const std::vector<Column> &columns) {
    std::string schema;
    for (const schema_entry &entry : schema_of(columns)) schema += bytes_of(entry);
    header.schema_columns = static_cast<uint32_t>(columns.size());
    header.task_pid = 1;
    header.attachments++;
    notice(end, LINK_SCHEMA, schema);
    notice(end, LINK_HEADER, bytes_of(header));
}

std::string LinkTask::block(const mapped_file_header &open, uint64_t sequence, BlockImage image) {
    block_header &header = image.header();
    notification &made = header.notification;
    made = {};
    made.generation = open.generation;
    made.kind = NOTIFICATION_BLOCK;
    made.element_count = image.element_count;
    made.sequence = sequence;
    made.first_element = sequence;
    made.offset = open.ring_offset + sequence % open.block_count * open.block_bytes;
    made.size = image.bytes.size();
    return {reinterpret_cast<const char *>(image.bytes.data()), image.bytes.size()};
}

std::string LinkTask::end(const mapped_file_header &open, uint64_t sequence, uint32_t kind) {
    block_header header = {};
    header.notification.generation = open.generation;
    header.notification.kind = kind;
    header.notification.sequence = sequence;
    header.notification.offset = open.ring_offset + sequence % open.block_count * open.block_bytes;
    header.notification.size = sizeof header;
    return bytes_of(header);
}

} // namespace supply_test
