// What the hub and an executor send to a rank elsewhere, while the rank reads. The input is steps, each a byte and its
// operands. Some operands are combined with valid values by exclusive or: zeros give the valid value.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "fuzzed_pair.h"
#include "input.h"
#include "link_task.h"

namespace supply_fuzz {
namespace {

using supply_test::LinkEnd;
using supply_test::LinkTask;

enum Step : uint8_t {
    BLOCK,   /**< mix of the notification; size and bytes as mixed() has them */
    HEADER,  /**< the header with the schema: mixed() */
    SCHEMA,  /**< of Datums: mixed() */
    FRAME,   /**< u8 kind, u32 length, u8 count, bytes: the length need not be true */
    RAW,     /**< u8 count, bytes */
    RECEIVE, /**< nothing */
    RELEASE, /**< nothing */
    CUT,     /**< nothing: once, the connection ends, and the rank comes again */
    STEPS,
};

/* How long a block may take to the rank. */
constexpr int kMilliseconds = 1;
/* Whether the rank comes again. It does not if it has refused something before. */
constexpr int kPatience = 500;

std::string bytes_of(Input &input) {
    std::string bytes(input.number<uint8_t>(), '\0');
    input.copy(bytes.data(), bytes.size());
    return bytes;
}

/** u16, combined with its size; u16 offset, u8 count, bytes, combined with those there. */
std::string mixed(std::string valid, Input &input) {
    valid.resize(valid.size() ^ input.number<uint16_t>());
    const size_t offset = input.number<uint16_t>();
    const std::string bytes = bytes_of(input);
    for (size_t i = 0; i < bytes.size() && offset + i < valid.size(); i++)
        valid[offset + i] = static_cast<char>(valid[offset + i] ^ bytes[i]);
    return valid;
}

std::vector<supply_test::Element> elements() { return {supply_test::numbered_element(1)}; }

class Links {
  public:
    explicit Links(Input input) : input_(input), pair_(task_.address(), "a key") { task_.patience = kPatience; }

    void run() {
        try {
            if (input_.number<uint8_t>() % 4 == 3) {
                const int kind = input_.number<uint8_t>();
                task_.answer(kind, bytes_of(input_));
            } else
                go_through();
        } catch (const std::runtime_error &) {
            /* The rank has refused what came. */
        }
        pair_.read_held();
        for (int i = 0; is_open_ && i < 4; i++) is_open_ = pair_.receive();
    }

  private:
    void go_through() {
        std::optional<LinkEnd> end(task_.meet(&header_));
        while (is_open_ && !input_.is_empty()) {
            const uint8_t step = input_.number<uint8_t>() % STEPS;
            if (step == CUT) {
                if (was_cut_) continue;
                was_cut_ = true;
                end->cut();
                end.emplace(task_.meet(&header_));
                sequence_ = header_.published;
            } else if (step == RECEIVE)
                receive();
            else if (step == RELEASE)
                pair_.release_oldest();
            else
                send(*end, step);
        }
        /* Now it has read everything. */
        end->end_writing();
        end->has_ended();
    }

    void send(LinkEnd &end, uint8_t step) {
        if (step == BLOCK)
            LinkTask::notice(end, LINK_BLOCK, block());
        else if (step == HEADER)
            LinkTask::notice(end, LINK_HEADER, mixed(header(), input_));
        else if (step == SCHEMA)
            LinkTask::notice(end, LINK_SCHEMA, mixed(schema(), input_));
        else if (step == FRAME) {
            const uint32_t kind = input_.number<uint8_t>(), bytes = input_.number<uint32_t>();
            const link_notice notice = {kind, bytes};
            end.write(std::string(reinterpret_cast<const char *>(&notice), sizeof notice) + bytes_of(input_));
        } else
            end.write(bytes_of(input_));
    }

    std::string block() {
        const supply_test::BlockImage image = supply_test::datum_block(elements());
        notification mix = {};
        input_.copy(&mix, sizeof mix);
        std::string valid = mix.kind == 0 ? LinkTask::block(header_, sequence_, image)
                                          : LinkTask::end(header_, sequence_, NOTIFICATION_BLOCK);
        const auto *bytes = reinterpret_cast<const char *>(&mix);
        for (size_t i = 0; i < sizeof mix; i++) valid[i] = static_cast<char>(valid[i] ^ bytes[i]);
        sequence_++;
        return mixed(valid, input_);
    }

    static std::string schema() {
        std::string all;
        for (const schema_entry &entry : schema_of(supply_test::datum_columns(elements())))
            all.append(reinterpret_cast<const char *>(&entry), sizeof entry);
        return all;
    }

    std::string header() const {
        mapped_file_header with = header_;
        with.schema_columns = static_cast<uint32_t>(schema().size() / sizeof(schema_entry));
        with.task_pid = 1;
        with.attachments++;
        return {reinterpret_cast<const char *>(&with), sizeof with};
    }

    void receive() {
        pollfd poller = {supply_fd(pair_.handle()), POLLIN, 0};
        poll(&poller, 1, kMilliseconds);
        is_open_ = is_open_ && pair_.receive();
    }

    Input input_;
    LinkTask task_;
    FuzzedPair pair_;
    mapped_file_header header_ = {};
    uint64_t sequence_ = 0;
    bool is_open_ = true;
    bool was_cut_ = false;
};

} // namespace
} // namespace supply_fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    supply_fuzz::Links(supply_fuzz::Input(data, size)).run();
    return 0;
}
