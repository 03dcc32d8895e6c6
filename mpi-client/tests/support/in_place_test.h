/** A rank whose data lies in place, in a foreign file. */
#pragma once

#include "in_place.h"
#include "rank.h"

namespace supply_test {

class InPlaceTest : public RankTest {
  protected:
    static constexpr size_t value_bytes = 100;

    std::string value(size_t index) const { return contents.substr(index * value_bytes, value_bytes); }

    /** Columns of Datums whose data is value 0, 1, … of the foreign file. */
    std::vector<Column> columns(uint32_t count, uint32_t file = 1) const {
        std::vector<Element> elements;
        for (uint32_t i = 0; i < count; i++) elements.push_back(numbered_element(i, 0));
        return datum_columns_in_place(file, contents, value_bytes, elements);
    }

    /** Supplies a block of Datums; the file has an entry then. */
    void supply_in_place(Task &task, uint32_t count = 1, uint32_t epoch = 0) const {
        if (task.header().foreign_count == 0) task.add_foreign_file(entry_of(path));
        task.write_schema(schema_of(columns(1)));
        BlockImage image(columns(count), count);
        image.header().referenced_bytes = static_cast<uint32_t>(count * value_bytes);
        task.supply(image, epoch);
    }

    /** Expects that the next call fails because of the foreign file, for good. */
    void expect_failure(const Handle &handle, int error, std::initializer_list<const char *> words) {
        supply_block_t block;
        ASSERT_STATUS(SUPPLY_ERROR_SYSTEM, supply_next(handle.get(), &block), handle);
        EXPECT_EQ(error, supply_error_errno(handle.get()));
        EXPECT_TRUE(says(supply_error(handle.get()), words));
        EXPECT_TRUE(says(supply_error(handle.get()), {files.mapped_file.c_str(), path.c_str(), "--in-place"}));
        EXPECT_STATUS(SUPPLY_ERROR_SYSTEM, supply_next(handle.get(), &block), handle) << "it stays";
    }

    std::string contents = foreign_contents(4000);
    std::string path = folder.write("data.mdb", contents);
};

/** The value of a column of any length. */
inline std::string value_at(const supply_column_t &column, uint32_t index) {
    const void *data = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(SUPPLY_OK, supply_value(&column, index, &data, &bytes)) << index;
    return std::string(static_cast<const char *>(data), bytes);
}

} // namespace supply_test
