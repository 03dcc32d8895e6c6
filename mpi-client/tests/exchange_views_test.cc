/** Values in place: they arrive as bytes. */
#include <algorithm>

#include "exchange_ranks.h"
#include "in_place.h"

namespace supply_test {

class ExchangeViewsTest : public ExchangeTest {
  protected:
    static constexpr size_t value_bytes = 100, count = 30;

    ExchangeViewsTest() { options.policy = SUPPLY_EXCHANGE_ALL; }

    /** A rank's task refers to values 0, 1, … of the rank's own file. */
    void supply(int rank, Task &task) override {
        const std::string contents = contents_of(rank);
        task.add_foreign_file(entry_of(ranks[static_cast<size_t>(rank)]->folder.write("data.mdb", contents)));
        for (size_t first = 0; first < count; first += 5) {
            std::vector<Element> elements;
            for (size_t i = first; i < first + 5; i++) elements.push_back(numbered_element(i, 0));
            const std::string rest = contents.substr(first * value_bytes);
            const std::vector<Column> columns = datum_columns_in_place(1, rest, value_bytes, elements);
            task.write_schema(schema_of(columns));
            BlockImage image(columns, 5);
            for (size_t i = 0; i < image.header().column_count; i++)
                if (columns[i].format == "vz") image.windows(i)->offset = first * value_bytes;
            image.header().referenced_bytes = 5 * value_bytes;
            task.supply(image, 0, 0, first);
        }
        task.end_of_epoch(0);
        task.end_of_data(0);
        task.see_end();
    }

    static std::string contents_of(int rank) {
        return foreign_contents(count * value_bytes, static_cast<char>('a' + rank));
    }

    /** Runs two ranks. Returns all values that they have received, in order. */
    std::vector<std::string> exchange() {
        std::vector<std::string> values[2], all;
        create({0, 0});
        run_opened([&]([[maybe_unused]] int rank, ExchangeRank &of) {
            supply_datum_t datum;
            while ((of.status = supply_next_datum(of.handle.get(), &datum)) == SUPPLY_OK)
                values[rank].emplace_back(static_cast<const char *>(datum.data), datum.data_bytes);
            EXPECT_STATUS(SUPPLY_END_OF_EPOCH, of.status, of.handle);
            supply_field_t field;
            EXPECT_EQ(SUPPLY_OK, supply_field(of.handle.get(), supply_column_index(of.handle.get(), "data"), &field));
            EXPECT_STREQ("z", field.format);
            EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_next_datum(of.handle.get(), &datum), of.handle);
            EXPECT_EQ(SUPPLY_OK, supply_close(of.handle.release()));
        });
        for (const auto &of_rank : values) {
            EXPECT_EQ(count, of_rank.size());
            all.insert(all.end(), of_rank.begin(), of_rank.end());
        }
        std::sort(all.begin(), all.end());
        return all;
    }

    static std::vector<std::string> expected() {
        std::vector<std::string> all;
        for (int rank = 0; rank < 2; rank++)
            for (size_t i = 0; i < count; i++) all.push_back(contents_of(rank).substr(i * value_bytes, value_bytes));
        std::sort(all.begin(), all.end());
        return all;
    }
};

TEST_F(ExchangeViewsTest, ArriveAsBytes) {
    options.window_bytes = 1000;
    EXPECT_EQ(expected(), exchange());
}

TEST_F(ExchangeViewsTest, OfBlocksThatAreCopied) {
    options.window_bytes = 100000; /* the ring has four slots, and a window six blocks */
    EXPECT_EQ(expected(), exchange());
}

} // namespace supply_test
