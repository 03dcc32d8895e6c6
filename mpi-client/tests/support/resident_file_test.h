/** A rank whose later epochs lie in a resident file of two blocks. */
#pragma once

#include <functional>

#include "in_place.h"
#include "rank.h"
#include "resident_file.h"

namespace supply_test {

class ResidentFileTest : public RankTest {
  protected:
    static constexpr uint64_t plan = 0x5152535455565758;

    /** Elements of block 0, then of block 1. */
    static constexpr uint32_t counts[] = {3, 2};

    static std::vector<Column> columns(uint32_t first, uint32_t count) {
        std::vector<Element> elements;
        elements.reserve(count);
        for (uint32_t i = 0; i < count; i++) elements.push_back(numbered_element(first + i));
        return datum_columns(elements);
    }

    /** Epoch 0 of two blocks of Datums in the ring, all of it. */
    void first_epoch(Task &task) const {
        task.header().plan = plan;
        task.write_schema(schema_of(columns(0, 1)));
        task.supply(BlockImage(columns(0, counts[0]), counts[0]), 0, 5, 0);
        task.supply(BlockImage(columns(counts[0], counts[1]), counts[1]), 0, 6, 0);
        task.end_of_epoch(0);
    }

    /** The file of that epoch, not sealed. */
    static ResidentFileImage image_of(Task &task, uint64_t block_bytes = 8192) {
        ResidentFileImage image(task.header(), schema_of(columns(0, 1)), block_bytes, task.header().generation);
        image.add(BlockImage(columns(0, counts[0]), counts[0]), 5, 0);
        image.add(BlockImage(columns(counts[0], counts[1]), counts[1]), 6, 0);
        return image;
    }

    /** Writes the file, and its entry. Returns its number. */
    uint32_t add_file(Task &task, const std::string &contents) const {
        return task.add_foreign_file(entry_of(folder.write("mapped.resident", contents)));
    }

    static void expect_datums(const Handle &handle, const supply_block_t &block, uint32_t first) {
        for (uint32_t i = 0; i < block.element_count; i++) {
            const Element expected = numbered_element(first + i);
            supply_datum_t datum;
            ASSERT_STATUS(SUPPLY_OK, supply_datum(handle.get(), &block, i, &datum), handle);
            EXPECT_EQ(expected.key, std::string(static_cast<const char *>(datum.key), datum.key_bytes));
            EXPECT_EQ(expected.data, std::string(static_cast<const char *>(datum.data), datum.data_bytes));
            EXPECT_EQ(expected.label, datum.label);
        }
    }

    /** Receives and releases epoch 0. */
    static void receive_first_epoch(const Handle &handle) {
        for (int i = 0; i < 2; i++) release(handle, next(handle));
        expect_end_of_epoch(handle, 0);
    }

    /** A rank that has received epoch 0, and the sealed file of that epoch. */
    struct Supplied {
        /** prepare: changes the file before it is sealed. */
        explicit Supplied(ResidentFileTest &test, const std::function<void(ResidentFileImage &)> &prepare = nullptr)
            : handle(test.open()), task(test.files), image(first_file(test)) {
            if (prepare) prepare(image);
            file = test.add_file(task, image.seal());
        }

        Handle handle;
        Task task;
        ResidentFileImage image;
        uint32_t file; /**< its number */

      private:
        ResidentFileImage first_file(const ResidentFileTest &test) {
            test.first_epoch(task);
            receive_first_epoch(handle);
            return image_of(task);
        }
    };

    std::string path = folder.file("mapped.resident");
};

} // namespace supply_test
