/** The hub and the executor of a linked rank, on a loopback address. Each step is a call, so that a test can do it
 * wrong. */
#pragma once

#include <string>
#include <vector>

#include "block_image.h"
#include "layout.h"

namespace supply_test {

/** A connection of the rank. The destructor cuts it. Reads throw after five minutes, and at the end of the connection.
 */
class LinkEnd {
  public:
    explicit LinkEnd(int fd) : fd_(fd) {}
    LinkEnd(LinkEnd &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    LinkEnd(const LinkEnd &) = delete;
    ~LinkEnd() { cut(); }

    void cut();
    /** Nothing more comes from here. */
    void end_writing();
    std::string read(size_t bytes);
    template <typename Struct>
    Struct read() {
        Struct value;
        read(sizeof value).copy(reinterpret_cast<char *>(&value), sizeof value);
        return value;
    }
    void write(const std::string &bytes);
    bool has_ended();

  private:
    int fd_;
};

struct Request {
    link_request head;
    std::string payload;
};

/** Where ranks connect: it plays the hub and the executor. */
class LinkTask {
  public:
    explicit LinkTask(std::string key = "a key");
    ~LinkTask();

    int patience = 300000; /**< in milliseconds, of accept() */

    std::string address(const std::string &run = "run") const;
    std::string place() const;

    /** The next connection, which must have this role, and knows the key. */
    LinkEnd accept(int role);
    /** Answers the next question at the hub. Returns the rank's question after its numbers. */
    std::string answer(int kind, const std::string &text);
    static std::string answer_of(int kind, const std::string &text);

    /** Answers the place, and takes the rank: `open` is what it sends first. */
    LinkEnd meet(mapped_file_header *open = nullptr);

    static Request request(LinkEnd &end);
    /** The next request of that kind; earlier credits are passed over. */
    static Request request(LinkEnd &end, uint32_t kind);
    static void notice(LinkEnd &end, uint32_t kind, const std::string &payload = "");

    /** The schema of these columns, and the header that has it. */
    void send_schema(LinkEnd &end, mapped_file_header header, const std::vector<Column> &columns);
    /** A block, or with bytes of a header alone an end, as it lies in a slot of the rank's ring. */
    static std::string block(const mapped_file_header &open, uint64_t sequence, BlockImage image);
    static std::string end(const mapped_file_header &open, uint64_t sequence, uint32_t kind);

  private:
    std::string key_;
    int listener_;
    int port_;
};

} // namespace supply_test
