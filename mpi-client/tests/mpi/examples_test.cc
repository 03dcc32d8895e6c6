// The example programs with two ranks, fed by two tasks of the test.
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "mpirun.h"
#include "process.h"
#include "rank.h"
#include "result_file.h"

namespace supply_test {
namespace {

class ExamplesTest : public ::testing::Test {
  protected:
    ExamplesTest() {
        std::string mapped, pipes;
        for (const char *number : {"0", "1"}) {
            const PairFiles pair = {folder.file(std::string("pair-") + number),
                                    folder.file(std::string("pair-") + number + ".request"),
                                    folder.file(std::string("pair-") + number + ".notification")};
            pairs.push_back(pair);
            mapped += pair.mapped_file + " ring=64KiB block=16KiB\n";
            pipes += pair.request_pipe + " " + pair.notification_pipe + "\n";
        }
        environment = {"SUPPLY_MAPPED_FILES=" + folder.write("mapped-files.conf", mapped),
                       "SUPPLY_NAMED_PIPES=" + folder.write("named-pipes.conf", pipes), "SUPPLY_TIMEOUT=60"};
    }

    /** Eight by eight pixels of noise. A bright row gives the label. */
    static Element digit(uint32_t number) {
        std::mt19937 noise(number);
        Element element;
        element.key = std::to_string(number);
        element.label = static_cast<int32_t>(number % 8);
        element.channels = 1;
        element.height = element.width = 8;
        for (int32_t pixel = 0; pixel < 64; pixel++)
            element.data += static_cast<char>(pixel / 8 == element.label ? 12 + noise() % 5 : noise() % 5);
        return element;
    }

    /** Supplies blocks of 16 digits in each epoch. */
    static void feed(const PairFiles &files, uint32_t blocks, uint32_t epochs, uint32_t first_block) {
        Task task(files);
        for (uint32_t epoch = 0; epoch < epochs; epoch++) {
            for (uint32_t block = first_block; block < blocks; block++) {
                std::vector<Element> elements;
                for (uint32_t i = 0; i < 16; i++) elements.push_back(digit(block * 16 + i));
                task.write_schema(schema_of(datum_columns(elements)));
                task.supply(datum_block(elements), epoch);
            }
            task.end_of_epoch(epoch);
        }
        task.end_of_data(epochs - 1);
        task.see_end();
    }

    /** Runs two ranks with different numbers of blocks. */
    Ended run(const std::vector<std::string> &program, uint32_t first_blocks, uint32_t second_blocks, uint32_t epochs) {
        Process ranks(mpirun(2, program), folder.path(), environment);
        std::thread first(feed, pairs[0], first_blocks, epochs, 0), second(feed, pairs[1], second_blocks, epochs, 0);
        first.join();
        second.join();
        const Ended ended = ranks.wait();
        for (const PairFiles &pair : pairs) EXPECT_FALSE(std::filesystem::exists(pair.mapped_file));
        return ended;
    }

    TemporaryFolder folder;
    std::vector<PairFiles> pairs;
    std::vector<std::string> environment;
};

/** Supplies x = first, first + 1, … in two epochs. Every third one is null. */
void feed_numbers(const PairFiles &files, float first, uint32_t count) {
    Task task(files);
    std::string values;
    for (uint32_t i = 0; i < count; i++) {
        const float value = first + static_cast<float>(i);
        values.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
    std::vector<Column> columns = {Column::int32("id", std::vector<int32_t>(count)), Column::fixed("x", "f", values)};
    columns[1].validity = "\x36"; // 0b110110
    columns[1].null_count = (count + 2) / 3;
    task.write_schema(schema_of(columns));
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        for (int block = 0; block < 3; block++) task.supply(BlockImage(columns, count), epoch);
        task.end_of_epoch(epoch);
    }
    task.end_of_data(1);
    task.see_end();
}

TEST_F(ExamplesTest, MinimalHasTheMeanOfAllRanks) {
    Process ranks(mpirun(2, {SUPPLY_TEST_MINIMAL}), folder.path(), environment);
    std::thread first(feed_numbers, pairs[0], 0.0F, 3), second(feed_numbers, pairs[1], 100.0F, 6);
    first.join();
    second.join();
    const Ended ended = ranks.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    // Of each block 1, 2 and 101, 102, 104, 105.
    EXPECT_EQ("mean 69.1667 of 36 values\nmean 69.1667 of 36 values\n", ended.out);
}

TEST_F(ExamplesTest, MinimalNamesWhatFailedFirst) {
    const auto ends_with = [&](const std::vector<Column> &columns, std::initializer_list<const char *> words) {
        Process ranks(mpirun(1, {SUPPLY_TEST_MINIMAL}), folder.path(), environment);
        Task task(pairs[0]);
        task.supply_all(columns, 2);
        const Ended ended = ranks.wait();
        EXPECT_NE(0, ended.exit_status);
        EXPECT_TRUE(says(ended.err, words));
        EXPECT_TRUE(says(task.header().rank_failure, words));
    };
    ends_with({Column::int32("x", {1, 2})}, {"column 'x' has the format 'i', not 'f'"});
    ends_with({Column::int32("y", {1, 2})}, {"there is no column 'x'"});
    ends_with({Column::variable("x", "u", {"a", "b"})}, {"column 'x' has the format 'u', not 'f'"});

    for (std::string &variable : environment)
        if (variable.rfind("SUPPLY_NAMED_PIPES", 0) == 0) variable = "SUPPLY_NAMED_PIPES=/nowhere";
    const Ended ended = Process(mpirun(1, {SUPPLY_TEST_MINIMAL}), folder.path(), environment).wait();
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"/nowhere", "No such file"}));
}

TEST_F(ExamplesTest, DatumsAreCounted) {
    const Ended ended = run({SUPPLY_TEST_DATUMS}, 3, 1, 2);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(says(ended.out, {"rank 0: 96 elements, 6144 bytes\n", "rank 1: 32 elements, 2048 bytes\n"}));
}

TEST_F(ExamplesTest, MeanPixelsAreAResultOfEachRank) {
    const Ended ended = run({SUPPLY_TEST_MEAN_PIXELS}, 3, 1, 2);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(says(ended.out, {"rank 0: 48 rows in ", "rank 1: 16 rows in "}));
    for (size_t rank : {0, 1}) {
        const ResultFile result = read_result(pairs[rank].mapped_file + ".mean_pixels.result");
        EXPECT_EQ(rank, static_cast<size_t>(result.header.rank));
        ASSERT_EQ(rank == 0 ? 48u : 16u, result.header.epoch_elements);
        for (uint32_t i = 0; i < result.header.epoch_elements; i++) {
            const Element element = digit(i);
            const float sum = static_cast<float>(std::accumulate(element.data.begin(), element.data.end(), 0));
            EXPECT_EQ(element.key, result.columns[0].values[i]);
            float mean;
            memcpy(&mean, result.columns[1].values[i]->data(), sizeof mean);
            EXPECT_EQ(sum / 64, mean);
        }
    }
}

TEST_F(ExamplesTest, ArrowColumnsHaveTheirMeans) {
    const Ended ended = run({SUPPLY_TEST_ARROW_COLUMNS, "label", "height"}, 3, 1, 2);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    // 16 digits a block, of labels 0 to 7 in turn.
    EXPECT_EQ("arrow-columns: label values=128 mean=3.500000\narrow-columns: height values=128 mean=8.000000\n",
              ended.out);
}

TEST_F(ExamplesTest, ArrowColumnsNamesAColumnWithoutNumbers) {
    for (const auto &[column, problem] : {std::pair{"data", "not of numbers"}, std::pair{"bogus", "no column"}}) {
        Process ranks(mpirun(1, {SUPPLY_TEST_ARROW_COLUMNS, "label", column}), folder.path(), environment);
        Task task(pairs[0]);
        task.write_schema(schema_of(datum_columns({digit(0)})));
        task.supply(datum_block({digit(0)}));
        const Ended ended = ranks.wait();
        EXPECT_NE(0, ended.exit_status);
        EXPECT_TRUE(says(ended.err, {column, problem}));
        EXPECT_TRUE(says(task.header().rank_failure, {column, problem}));
    }
}

TEST_F(ExamplesTest, ArrowColumnsRequiresTwoColumns) {
    const Ended ended = Process(alone(SUPPLY_TEST_ARROW_COLUMNS), folder.path(), environment).wait();
    EXPECT_EQ(2, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"usage: arrow-columns"}));
}

TEST_F(ExamplesTest, TrainingTakesUnequalSharesAndEvaluatesItsWeights) {
    const std::string weights = folder.file("weights");
    Ended ended = run({SUPPLY_TEST_TRAIN_DIGITS, "--save", weights}, 7, 2, 6);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(says(ended.out, {"epoch 1: elements=144 ", "epoch 6: elements=144 ",
                                 "train-digits: ranks=2 epochs=6 elements=864 loss=0."}));

    ended = run({SUPPLY_TEST_TRAIN_DIGITS, "--evaluate", weights}, 0, 9, 1);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ("train-digits: evaluated=144 accuracy=1.000\n", ended.out);
}

TEST_F(ExamplesTest, TrainingGoesOnFromItsCheckpoint) {
    const std::string checkpoint = folder.file("checkpoint"), whole = folder.file("whole"), rest = folder.file("rest");
    const auto train = [&](const std::string &weights) {
        return std::vector<std::string>{
            SUPPLY_TEST_TRAIN_DIGITS, "--save", weights, "--checkpoint", checkpoint, "--every", "4"};
    };
    Ended ended = run(train(whole), 7, 2, 1);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    // After step 4 rank 0 has blocks left, and rank 1 has ended the epoch.
    EXPECT_TRUE(says(read_file(checkpoint), {"digits-checkpoint-1 ranks=2 steps=4 epochs=0\n",
                                             "\n0 position-1:0:1:", "\n1 position-1:1:0:0:0:"}));
    EXPECT_FALSE(std::filesystem::exists(checkpoint + ".next"));

    Process ranks(mpirun(2, train(rest)), folder.path(), environment);
    std::thread first([&] { feed(pairs[0], 7, 1, 4); });
    Task second(pairs[1]);
    EXPECT_EQ(1u, second.header().start_epoch);
    second.write_schema(schema_of(datum_columns({digit(0)})));
    second.end_of_data(0);
    second.see_end();
    first.join();
    ended = ranks.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(says(ended.out, {"epoch 1: elements=144 ", "ranks=2 epochs=1 elements=144 "}));
    EXPECT_EQ(read_file(whole), read_file(rest));
}

TEST_F(ExamplesTest, ACheckpointOfOtherRanksIsRefused) {
    for (const char *text : {"digits-checkpoint-1 ranks=3 steps=4 epochs=0\n", "", "hello"}) {
        const std::string checkpoint = folder.write("checkpoint", text);
        const Ended ended =
            Process(mpirun(2, {SUPPLY_TEST_TRAIN_DIGITS, "--checkpoint", checkpoint}), folder.path(), environment)
                .wait();
        EXPECT_NE(0, ended.exit_status);
        EXPECT_TRUE(says(ended.err, {"is no checkpoint of as many ranks"}));
    }
}

TEST_F(ExamplesTest, AFailureOfSparkEndsEveryRank) {
    for (const char *program : {SUPPLY_TEST_MINIMAL, SUPPLY_TEST_DATUMS, SUPPLY_TEST_TRAIN_DIGITS}) {
        Process ranks(mpirun(2, {program}), folder.path(), environment);
        Task first(pairs[0]), second(pairs[1]);
        first.send_failure("the source is gone");
        const Ended ended = ranks.wait();
        EXPECT_NE(0, ended.exit_status);
        EXPECT_TRUE(says(ended.err, {"the source is gone"}));
    }
}

TEST_F(ExamplesTest, AnElementThatIsNotADigitIsNamed) {
    Process ranks(mpirun(1, {SUPPLY_TEST_TRAIN_DIGITS}), folder.path(), environment);
    Task task(pairs[0]);
    const std::vector<Element> elements = {digit(0), numbered_element(1, 63)};
    task.write_schema(schema_of(datum_columns(elements)));
    task.supply(datum_block(elements), 0, 4, 100);
    const Ended ended = ranks.wait();
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"train-digits: rank 0: element 101 of partition 4", "63 bytes"}));
    EXPECT_TRUE(says(task.header().rank_failure, {"element 101 of partition 4"}));
}

TEST_F(ExamplesTest, WrongCommandLines) {
    const std::vector<std::string> wrong[] = {{"--bogus"},
                                              {"--learning-rate", "0"},
                                              {"--save", "a", "--evaluate", "b"},
                                              {"--checkpoint", "a", "--evaluate", "b"},
                                              {"--every", "0"},
                                              {"argument"}};
    for (const std::vector<std::string> &options : wrong) {
        std::vector<std::string> program = alone(SUPPLY_TEST_TRAIN_DIGITS);
        program.insert(program.end(), options.begin(), options.end());
        const Ended ended = Process(program, folder.path(), environment).wait();
        EXPECT_EQ(2, ended.exit_status) << options[0];
        EXPECT_TRUE(says(ended.err, {"train-digits"}));
    }
    std::vector<std::string> program = alone(SUPPLY_TEST_TRAIN_DIGITS);
    program.insert(program.end(), {"--evaluate", folder.file("absent")});
    const Ended absent = Process(program, folder.path(), environment).wait();
    EXPECT_NE(0, absent.exit_status);
    EXPECT_TRUE(says(absent.err, {"--evaluate", "absent", "No such file"}));
}

} // namespace
} // namespace supply_test
