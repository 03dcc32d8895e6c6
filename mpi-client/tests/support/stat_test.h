/** Runs supply-stat on the pairs of tool_test.h. */
#pragma once

#include "json.h"
#include "tool_test.h"

namespace supply_test {

class StatTest : public ToolTest {
  protected:
    StatTest() {
        supply_options_init(&options);
        options.mapped_files = config[1].c_str();
        options.named_pipes = config[3].c_str();
        options.local_rank = 0;
        options.rank = 5;
        options.block_bytes = 8192;
    }

    /** The rank of pair 0. */
    Handle open_rank() {
        supply_t *supply;
        const supply_status_t status = supply_open(&supply, &options);
        Handle handle(supply);
        EXPECT_STATUS(SUPPLY_OK, status, handle);
        return handle;
    }

    /** Supplies a block of ten Datums, after `first` earlier ones. */
    static void supply_datums(Task &task, uint64_t first, uint32_t epoch = 0, uint32_t partition = 0) {
        std::vector<Element> elements;
        for (uint64_t i = 0; i < 10; i++) elements.push_back(numbered_element(first + i));
        task.write_schema(schema_of(datum_columns(elements)));
        BlockImage block = datum_block(elements);
        block.header().elements_before = first;
        block.header().bytes_before = first * 100;
        task.supply(block, epoch, partition, first);
    }

    /** Runs supply-stat until a snapshot fulfils the condition, and returns that snapshot. */
    template <typename Condition>
    Json snapshot_until(const char *what, const std::vector<std::string> &which, Condition condition) const {
        std::vector<std::string> command = {SUPPLY_TEST_STAT, "--json", "--interval", "0.02"};
        command.insert(command.end(), which.begin(), which.end());
        Process process(command, folder.path());
        std::string found;
        wait_until(what, [&] {
            const std::string lines = process.output();
            for (size_t begin = 0, end; found.empty() && (end = lines.find('\n', begin)) != std::string::npos;
                 begin = end + 1)
                if (condition(Json(lines.substr(begin, end - begin)))) found = lines.substr(begin, end - begin);
            return !found.empty();
        });
        process.signal(SIGTERM);
        const Ended ended = process.wait();
        EXPECT_EQ(128 + SIGTERM, ended.exit_status);
        EXPECT_EQ("", ended.err);
        return Json(found);
    }
    Json snapshot(const std::vector<std::string> &which) const {
        return snapshot_until("a snapshot", which, [](const Json &) { return true; });
    }
    /** A snapshot of pair 0. */
    Json snapshot() const { return snapshot(config)["pairs"][size_t{0}]; }

    supply_options_t options;
};

} // namespace supply_test
