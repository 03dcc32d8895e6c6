// The C examples of the documents and headers, as programs of one rank.
#include "mpirun.h"
#include "process.h"
#include "rank.h"

namespace supply_test {
namespace {

class ExampleTest : public RankTest, public ::testing::WithParamInterface<std::string> {
  protected:
    /** The program of the READMEs reads a column of floats, the others read Datums. */
    static bool has_numbers() { return GetParam().find("README") != std::string::npos; }

    static void supply(Task &task, uint32_t count, uint32_t epoch) {
        if (!has_numbers()) return supply_datums(task, 0, count, epoch);
        const std::vector<Column> columns = {Column::fixed("x", "f", std::string(count * sizeof(float), '\0'))};
        task.write_schema(schema_of(columns));
        task.supply(BlockImage(columns, count), epoch);
    }

    /** Starts the example as the rank of the pair. */
    Process start() {
        const std::string mapped = folder.write("mapped-files.conf", files.mapped_file + " ring=32KiB block=8KiB\n");
        const std::string pipes =
            folder.write("named-pipes.conf", files.request_pipe + " " + files.notification_pipe + "\n");
        return Process(alone(std::string(SUPPLY_TEST_EXAMPLES_FOLDER "/") + GetParam()), folder.path(),
                       {"SUPPLY_MAPPED_FILES=" + mapped, "SUPPLY_NAMED_PIPES=" + pipes, "SUPPLY_TIMEOUT=60",
                        "OMPI_COMM_WORLD_LOCAL_RANK=0"});
    }
};
using DatumExampleTest = ExampleTest;

TEST_P(ExampleTest, ReceivesEveryElement) {
    Process rank = start();
    Task task(files);
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        supply(task, 3, epoch);
        supply(task, 4, epoch);
        task.end_of_epoch(epoch);
    }
    task.end_of_data(1);
    task.see_end();
    const Ended ended = rank.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ("", ended.err);
    EXPECT_TRUE(says(ended.out, {has_numbers() ? "14 values" : "14 elements"}));
}

TEST_P(ExampleTest, ReportsAFailureOfSpark) {
    Process rank = start();
    Task task(files);
    supply(task, 3, 0);
    task.send_failure("the source is gone");
    const Ended ended = rank.wait();
    EXPECT_NE(0, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"the source is gone"}));
}

TEST_P(DatumExampleTest, ReportsAMissingColumn) {
    Process rank = start();
    Task task(files);
    const std::vector<Column> columns = {Column::int32("weight", {1})};
    task.write_schema(schema_of(columns));
    task.supply(BlockImage(columns, 1));
    const Ended ended = rank.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"column"}));
}

const auto name = [](const auto &example) {
    std::string name = example.param;
    for (char &letter : name)
        if (!isalnum(letter)) letter = '_';
    return name;
};
INSTANTIATE_TEST_SUITE_P(Documents, ExampleTest, ::testing::Values(SUPPLY_TEST_EXAMPLES), name);
INSTANTIATE_TEST_SUITE_P(Documents, DatumExampleTest, ::testing::Values(SUPPLY_TEST_DATUM_EXAMPLES), name);

} // namespace
} // namespace supply_test
