// proto/golden/must-fail.tsv: every row for the rank spoils the task's golden files and must be refused.
#include <map>
#include <sstream>

#include "golden.h"

namespace supply_test {
namespace {

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
}

std::string bytes_of(const std::string &hex) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
}

class MustFailTest : public RankTest {
  protected:
    /** Replays the golden files with the damage of a row. */
    Handle replay_damaged(const std::vector<std::string> &row) {
        const std::string run = row[0].substr(0, row[0].find('.')), foreign = foreign_of(run);
        std::map<std::string, std::string> contents;
        for (const std::string &name : {run + ".mapped", run + ".notifications", foreign})
            if (!name.empty()) contents[name] = read_golden(name);
        if (!foreign.empty()) {
            damage(row, foreign, contents.at(foreign));
            place_foreign_file(folder, foreign, contents.at(foreign), contents.at(run + ".mapped"));
        }
        for (auto &[name, content] : contents) damage(row, name, content);
        for (const std::string &name : split(row[0], ',')) EXPECT_EQ(1u, contents.count(name)) << name;
        return replay(files, contents.at(run + ".mapped"), contents.at(run + ".notifications"));
    }

  private:
    static void damage(const std::vector<std::string> &row, const std::string &name, std::string &content) {
        const std::vector<std::string> names = split(row[0], ','), offsets = split(row[1], ',');
        ASSERT_EQ(names.size(), offsets.size());
        const std::string bytes = bytes_of(row[2]);
        for (size_t i = 0; i < names.size(); i++) {
            if (names[i] != name) continue;
            ASSERT_LE(std::stoul(offsets[i]) + bytes.size(), content.size());
            content.replace(std::stoul(offsets[i]), bytes.size(), bytes);
        }
    }
};

TEST_F(MustFailTest, EveryRowForTheRankIsRefusedByName) {
    const std::vector<std::string> rows = split(read_file(SUPPLY_TEST_GOLDEN "/must-fail.tsv"), '\n');
    ASSERT_EQ("file\toffset\tbytes\treader\tnames", rows.at(0));
    int refused = 0;
    for (size_t i = 1; i < rows.size(); i++) {
        SCOPED_TRACE("must-fail.tsv:" + std::to_string(i + 1) + ": " + rows[i]);
        const std::vector<std::string> row = split(rows[i], '\t');
        ASSERT_EQ(5u, row.size());
        if (row[3] != "rank") continue;
        Handle handle = replay_damaged(row);
        supply_counts_t counts;
        supply_datum_t datum;
        supply_status_t status = supply_counts(handle.get(), &counts);
        while (status >= 0 && status != SUPPLY_END_OF_DATA) status = supply_next_datum(handle.get(), &datum);
        ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, status, handle);
        EXPECT_TRUE(says(supply_error(handle.get()), {row[4].c_str()}));
        refused++;
    }
    EXPECT_GT(refused, 20);
}

} // namespace
} // namespace supply_test
