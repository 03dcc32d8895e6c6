// Duplicates in the keys of a matrix, on several ranks and in several portions.
#include "mpirun.h"
#include "process.h"
#include "rank.h"
#include "temporary_folder.h"

namespace supply_test {
namespace {

std::string check(int ranks, int portion, int keys, const std::string &format, int same) {
    TemporaryFolder folder;
    const Ended ended = Process(mpirun(ranks, {SUPPLY_TEST_CHECK_KEYS, std::to_string(portion), std::to_string(keys),
                                               format, std::to_string(same)}),
                                folder.path())
                            .wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    return ended.out;
}

void expect_unique(const std::string &out) { EXPECT_TRUE(says(out, {"rank 0: unique\n", "rank 1: unique\n"})) << out; }

void expect_duplicate(const std::string &out, const std::string &name) {
    const std::string text = "the key " + name + " (rank 0) is in more than one row";
    const std::string first = "rank 0: " + text, second = "rank 1: " + text;
    EXPECT_TRUE(says(out, {first.c_str(), second.c_str()})) << out;
}

TEST(UniqueKeysTest, UniqueKeysInOneAndInManyPortions) {
    for (const char *format : {"l", "u"})
        for (const int portion : {100, 1 << 20}) expect_unique(check(2, portion, 5000, format, 0));
}

TEST(UniqueKeysTest, ShortKeysThatDifferInTheirLengthOnly) { expect_unique(check(2, 1 << 20, 100, "z", 0)); }

TEST(UniqueKeysTest, ADuplicateOnAnotherRankIsFound) {
    expect_duplicate(check(2, 1 << 20, 5000, "l", 1), "0");
    expect_duplicate(check(2, 100, 5000, "u", 1), "'key number 0'");
}

TEST(UniqueKeysTest, ADuplicateOnTheSameRankIsFound) { expect_duplicate(check(2, 100, 5001, "l", 1), "0"); }

TEST(UniqueKeysTest, SoManyEqualKeysThatTheyDoNotFitTheirShare) {
    expect_duplicate(check(3, 100, 60000, "l", 60000), "0");
}

TEST(UniqueKeysTest, MoreRanksThanKeys) {
    expect_unique(check(3, 100, 1, "u", 0));
    expect_duplicate(check(3, 100, 2, "u", 1), "'key number 0'");
}

} // namespace
} // namespace supply_test
