/** Pairs for ranks of a real mpirun, supplied by tasks of the test. */
#pragma once

#include <thread>

#include "process.h"
#include "rank.h"

namespace supply_test {

/** What the tasks supply. */
struct SuppliedData {
    uint32_t block_elements = 20;
    uint32_t epochs = 2;
};

class SuppliedRanks {
  public:
    /** The config files of that many pairs. */
    explicit SuppliedRanks(size_t pairs, const std::string &timeout = "60") {
        std::string mapped, pipes;
        for (size_t i = 0; i < pairs; i++) {
            const std::string name = folder.file("pair-" + std::to_string(i));
            files.push_back({name, name + ".request", name + ".notification"});
            mapped += name + " ring=64KiB block=16KiB\n";
            pipes += name + ".request " + name + ".notification\n";
        }
        environment = {"SUPPLY_MAPPED_FILES=" + folder.write("mapped-files.conf", mapped),
                       "SUPPLY_NAMED_PIPES=" + folder.write("named-pipes.conf", pipes), "SUPPLY_TIMEOUT=" + timeout};
    }

    /** Runs a command. The task of pair p supplies blocks[p] blocks; all Datums together are numbered from 0. */
    Ended run(const std::vector<std::string> &command, const std::vector<uint32_t> &blocks) {
        Process ranks(command, folder.path(), environment);
        std::vector<std::thread> tasks;
        uint32_t first = 0;
        for (size_t i = 0; i < blocks.size(); i++) {
            tasks.emplace_back([this, i, first, &blocks] { feed(files[i], first, blocks[i]); });
            first += blocks[i] * data.block_elements;
        }
        for (std::thread &task : tasks) task.join();
        return ranks.wait();
    }

    /** What exchange-ids prints if the ranks received all elements once in each epoch. */
    std::string all_epochs(uint64_t elements) const {
        const std::string received = std::to_string(elements) + " elements, sum " +
                                     std::to_string(elements * (elements - 1) / 2) + ", squares " +
                                     std::to_string((elements - 1) * elements * (2 * elements - 1) / 6) + "\n";
        std::string text;
        for (uint32_t epoch = 0; epoch < data.epochs; epoch++)
            text += "epoch " + std::to_string(epoch) + ": " + received;
        return text;
    }

    TemporaryFolder folder;
    std::vector<PairFiles> files;
    std::vector<std::string> environment;
    SuppliedData data;
    bool ranks_leave_early = false; /**< so the tasks do not wait for their ends */

  private:
    void feed(const PairFiles &of, uint32_t first, uint32_t blocks) const {
        try {
            Task task(of);
            supply(task, first, blocks);
        } catch (const std::exception &exception) {
            EXPECT_TRUE(ranks_leave_early) << exception.what();
        }
    }

    /** Supplies blocks, numbered from `first`. */
    void supply(Task &task, uint32_t first, uint32_t blocks) const {
        task.write_schema(schema_of(datum_columns({numbered_element(0)})));
        const mapped_file_header &header = task.header();
        for (uint32_t epoch = header.start_epoch; epoch < data.epochs; epoch++) {
            const bool is_rest = epoch == header.start_epoch && header.start_inside;
            for (uint64_t at = is_rest ? header.start_element : 0; at < uint64_t{blocks} * data.block_elements;
                 at += data.block_elements) {
                std::vector<Element> elements;
                for (uint32_t i = 0; i < data.block_elements; i++)
                    elements.push_back(numbered_element(first + at + i, 50 + i));
                task.supply(datum_block(elements), epoch, 0, at);
            }
            task.end_of_epoch(epoch);
        }
        if (ranks_leave_early) return;
        task.end_of_data(data.epochs - 1);
        task.see_end();
    }
};

} // namespace supply_test
