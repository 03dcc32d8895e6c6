/** Runs the tools on the config files of two pairs. */
#pragma once

#include <signal.h>

#include "process.h"
#include "rank.h"

namespace supply_test {

class ToolTest : public ::testing::Test {
  protected:
    ToolTest() {
        std::string mapped, pipes;
        for (const char *number : {"0", "1"}) {
            const std::string path = folder.file(std::string("pair-") + number);
            const PairFiles pair = {path + ".mapped", path + ".request", path + ".notification"};
            pairs.push_back(pair);
            mapped += pair.mapped_file + " ring=32KiB\n";
            pipes += pair.request_pipe + " " + pair.notification_pipe + "\n";
        }
        config = {"--mapped-files", folder.write("mapped-files.conf", mapped), "--named-pipes",
                  folder.write("named-pipes.conf", pipes)};
    }

    std::vector<std::string> command(const char *program, const std::vector<std::string> &more = {}) const {
        std::vector<std::string> command = {program};
        command.insert(command.end(), config.begin(), config.end());
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }
    Ended run(const char *program, const std::vector<std::string> &more = {}) const {
        return Process(command(program, more), folder.path()).wait();
    }
    /** A command line of supply-cat as the rank of a pair. */
    std::vector<std::string> rank(int number) const {
        return command(SUPPLY_TEST_CAT, {"--local-rank", std::to_string(number)});
    }
    void leave_stale_pair(int number) const {
        Process process(rank(number), folder.path());
        Task opened(pairs[static_cast<size_t>(number)]);
        process.signal(SIGKILL);
        process.wait();
    }
    std::vector<std::string> paths_of(size_t number) const {
        return {pairs[number].mapped_file, pairs[number].request_pipe, pairs[number].notification_pipe};
    }
    /** The three paths, one on each line. */
    std::string lines_of(size_t number) const {
        std::string lines;
        for (const std::string &path : paths_of(number)) lines += path + "\n";
        return lines;
    }
    bool exists(size_t number) const { return std::filesystem::exists(pairs[number].mapped_file); }

    TemporaryFolder folder;
    std::vector<PairFiles> pairs;
    std::vector<std::string> config;
};

} // namespace supply_test
