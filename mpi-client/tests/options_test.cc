// From the options and the environment to a pair: which files, which rank, how large, how long.
#include <algorithm>
#include <clocale>

#include "environment.h"
#include "rank.h"

extern "C" {
#include "files/options.h"
}

namespace supply_test {
namespace {

class OptionsTest : public RankTest {
  protected:
    ~OptionsTest() override { supply__settings_free(&settings); }

    supply_status_t resolve() {
        supply__settings_free(&settings);
        return supply__settings(&options, &settings, &failure);
    }

    /** Takes the pair from config files of two lines. */
    void use_config_files(const std::string &sizes = "") {
        mapped_files = folder.write("mapped-files.conf", "/a/0\n/a/1 " + sizes + "\n");
        named_pipes = folder.write("named-pipes.conf", "/p/0 /p/1\n/p/2 /p/3\n");
        supply_options_init(&options);
        options.mapped_files = mapped_files.c_str();
        options.named_pipes = named_pipes.c_str();
        options.local_rank = 1;
    }

    EnvironmentVariable no_files{"SUPPLY_MAPPED_FILES", nullptr}, no_pipes{"SUPPLY_NAMED_PIPES", nullptr},
        no_timeout{"SUPPLY_TIMEOUT", nullptr}, no_ompi{"OMPI_COMM_WORLD_LOCAL_RANK", nullptr},
        no_hydra{"MPI_LOCALRANKID", nullptr}, no_torchrun{"LOCAL_RANK", nullptr}, no_slurm{"SLURM_LOCALID", nullptr},
        no_share{"SUPPLY_SHARE", nullptr}, no_local_size{"LOCAL_WORLD_SIZE", nullptr},
        no_ompi_size{"OMPI_COMM_WORLD_LOCAL_SIZE", nullptr}, no_sizes{"OMPI_COMM_WORLD_SIZE", nullptr},
        no_pmi_size{"PMI_SIZE", nullptr}, no_world{"WORLD_SIZE", nullptr};
    std::string mapped_files, named_pipes;
    struct settings settings = {};
    struct failure failure = {};
};

TEST_F(OptionsTest, TheLineOfTheLocalRankIsTaken) {
    use_config_files();
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_STREQ("/a/1", settings.files.mapped_file.path);
    EXPECT_STREQ("/p/2", settings.files.request_pipe.path);
    EXPECT_STREQ("/p/3", settings.files.notification_pipe.path);
    EXPECT_EQ(1, settings.local_rank);
    EXPECT_NE(0u, settings.generation);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), settings.rank_pid);
}

TEST_F(OptionsTest, NeighboursShareTheRingOfTheFirst) {
    use_config_files();
    for (const char *share : {"2", "node"}) {
        EnvironmentVariable variable{"SUPPLY_SHARE", share};
        ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
        EXPECT_EQ(1u, settings.reader);
        EXPECT_EQ(2u, settings.readers);
        EXPECT_STREQ("/a/0", settings.ring_file.path);
    }
    {
        EnvironmentVariable node{"SUPPLY_SHARE", "node"}, ranks{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"};
        ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
        EXPECT_EQ(0u, settings.readers) << "the other line is for a rank of another node";
    }
    EnvironmentVariable alone{"SUPPLY_SHARE", "1"};
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(0u, settings.readers);
    options.local_rank = 0;
    options.readers = 2;
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(0u, settings.reader) << "the option wins over the environment";
    EXPECT_EQ(2u, settings.readers);
}

TEST_F(OptionsTest, AGroupThatCannotBeIsRefused) {
    use_config_files();
    for (const char *share : {"0", "-1", "1.5", "two", "3", "2000", "1e30", "nan"}) {
        EnvironmentVariable variable{"SUPPLY_SHARE", share};
        EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve()) << share;
        EXPECT_TRUE(says(failure.text, {"SUPPLY_SHARE"}) || says(failure.text, {"reader 1 of 3", "2 lines"}));
    }
    for (const auto &[reader, readers] : {std::pair{2, 2}, {-1, 2}, {0, -1}, {0, 2000}, {1, 0}}) {
        options.reader = reader;
        options.readers = readers;
        EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve()) << reader << " of " << readers;
    }
}

TEST_F(OptionsTest, TheEnvironmentStandsInForOptions) {
    use_config_files();
    options.mapped_files = options.named_pipes = nullptr;
    options.local_rank = -1;
    EnvironmentVariable files{"SUPPLY_MAPPED_FILES", mapped_files.c_str()};
    EnvironmentVariable pipes{"SUPPLY_NAMED_PIPES", named_pipes.c_str()};
    EnvironmentVariable timeout{"SUPPLY_TIMEOUT", "7.5"};
    EnvironmentVariable local_rank{"OMPI_COMM_WORLD_LOCAL_RANK", "1"};
    EnvironmentVariable rank{"OMPI_COMM_WORLD_RANK", "5"};
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_STREQ("/a/1", settings.files.mapped_file.path);
    EXPECT_EQ(7.5, settings.timeout);
    EXPECT_EQ(5, settings.rank);
}

TEST_F(OptionsTest, OptionsWinOverTheEnvironment) {
    use_config_files();
    options.timeout = 3;
    options.rank = 6;
    EnvironmentVariable files{"SUPPLY_MAPPED_FILES", "/nowhere"};
    EnvironmentVariable timeout{"SUPPLY_TIMEOUT", "not read"};
    EnvironmentVariable local_rank{"OMPI_COMM_WORLD_LOCAL_RANK", "0"};
    EnvironmentVariable rank{"OMPI_COMM_WORLD_RANK", "5"};
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(1, settings.local_rank);
    EXPECT_EQ(3, settings.timeout);
    EXPECT_EQ(6, settings.rank);
}

TEST_F(OptionsTest, PathsWinOverConfigFiles) {
    options.mapped_files = "/nowhere";
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(files.mapped_file, settings.files.mapped_file.path);
}

TEST_F(OptionsTest, MistakesNameTheSetting) {
    use_config_files();
    options.local_rank = 2;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"2 lines", "local rank 2", mapped_files.c_str(), named_pipes.c_str()}));

    options.local_rank = -1;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"local rank is not known", "--local-rank"}));

    options.local_rank = 0;
    options.mapped_files = nullptr;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"--mapped-files", "SUPPLY_MAPPED_FILES"}));

    options.mapped_files = mapped_files.c_str();
    options.named_pipes = nullptr;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"--named-pipes", "SUPPLY_NAMED_PIPES"}));
}

TEST_F(OptionsTest, ALauncherOfAnotherMpiIsNamed) {
    use_config_files();
    for (const char *name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"}) {
        EnvironmentVariable size{name, "2"};
        options.ranks = 1;
        EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
        EXPECT_TRUE(says(failure.text, {"processes is 1", (std::string(name) + "=2").c_str(), "mpirun of the MPI"}));
        options.ranks = 2;
        EXPECT_EQ(SUPPLY_OK, resolve()) << failure.text;
        EnvironmentVariable left{"SLURM_STEP_NUM_TASKS", "7"};
        EXPECT_EQ(SUPPLY_OK, resolve()) << "one launcher within the other: " << failure.text;
    }
}

TEST_F(OptionsTest, AnMpiProgramWithoutALauncherIsToldToUseOne) {
    use_config_files();
    options.ranks = 1;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"2 lines", "only rank", "mpirun -n 2"}));
    options.ranks = 2;
    EXPECT_EQ(SUPPLY_OK, resolve()) << "a launcher that sets no variable: " << failure.text;
    options.ranks = 1;
    {
        EnvironmentVariable size{"OMPI_COMM_WORLD_SIZE", "1"};
        EXPECT_EQ(SUPPLY_OK, resolve()) << failure.text;
    }
    folder.write("mapped-files.conf", "/a/0\n");
    folder.write("named-pipes.conf", "/p/0 /p/1\n");
    options.local_rank = 0;
    EXPECT_EQ(SUPPLY_OK, resolve()) << failure.text;
}

TEST_F(OptionsTest, APairInUseNamesTheVariablesOfTheLocalRank) {
    Handle first = open();
    mapped_files = folder.write("mapped-files.conf", files.mapped_file + "\n");
    named_pipes = folder.write("named-pipes.conf", files.request_pipe + " " + files.notification_pipe + "\n");
    supply_options_init(&options);
    options.mapped_files = mapped_files.c_str();
    options.named_pipes = named_pipes.c_str();
    EnvironmentVariable left{"LOCAL_RANK", "0"};
    for (const char *launcher : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
        EnvironmentVariable started{launcher, "0"};
        {
            Handle second = open(SUPPLY_ERROR_IN_USE);
            EXPECT_TRUE(says(supply_error(second.get()), {"in use by process", "local rank 0", "LOCAL_RANK=0",
                                                          (std::string(launcher) + "=0").c_str()}));
        }
        EnvironmentVariable torchrun{"WORLD_SIZE", "1"};
        Handle second = open(SUPPLY_ERROR_IN_USE);
        EXPECT_TRUE(
            says(supply_error(second.get()), {"first of LOCAL_RANK=0, ", (std::string(launcher) + "=0)").c_str()}));
    }
    options.local_rank = 0;
    Handle second = open(SUPPLY_ERROR_IN_USE);
    EXPECT_EQ(nullptr, strstr(supply_error(second.get()), "LOCAL_RANK"));
}

TEST_F(OptionsTest, ThePathsGoTogetherAndAreAbsolute) {
    options.request_pipe = nullptr;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"request_pipe", "all or none"}));

    options.request_pipe = "relative";
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"'relative'", "absolute"}));
}

TEST_F(OptionsTest, OptionsThatWereNotInitialisedAreRefused) {
    for (size_t bytes : {size_t{0}, sizeof options - 8, sizeof options + 8, SIZE_MAX}) {
        options.struct_bytes = bytes;
        EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, resolve());
        EXPECT_TRUE(says(failure.text, {"supply_options_init()"}));
    }
    options.struct_bytes = sizeof options;
    options.local_rank = -2;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, resolve());
}

TEST_F(OptionsTest, NumbersHaveAPointInEveryLocale) {
    const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    const auto *found =
        std::find_if(std::begin(names), std::end(names), [](auto *name) { return setlocale(LC_ALL, name) != nullptr; });
    if (found == std::end(names)) GTEST_SKIP() << "needs a locale with a decimal comma, such as de_DE.UTF-8";
    for (const char *text : {"0.5", "1.25e1", "7"}) {
        EnvironmentVariable timeout{"SUPPLY_TIMEOUT", text};
        EXPECT_EQ(SUPPLY_OK, resolve()) << failure.text;
        options.timeout = 0;
    }
    EnvironmentVariable timeout{"SUPPLY_TIMEOUT", "0,5"};
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    setlocale(LC_ALL, "C");
}

// YAML and Slurm scripts set empty variables.
TEST_F(OptionsTest, AnEmptyVariableIsNotSet) {
    EnvironmentVariable timeout{"SUPPLY_TIMEOUT", ""}, results{"SUPPLY_RESULTS_FOLDER", ""};
    options.timeout = 0;
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(120, settings.timeout);
    EXPECT_EQ(folder.path(), settings.results_folder.path);
    use_config_files();
    options.mapped_files = nullptr;
    EnvironmentVariable mapped{"SUPPLY_MAPPED_FILES", ""}, pipes{"SUPPLY_NAMED_PIPES", ""};
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"no mapped-files.conf", "SUPPLY_MAPPED_FILES"}));
    options.mapped_files = mapped_files.c_str();
    options.named_pipes = nullptr;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve());
    EXPECT_TRUE(says(failure.text, {"no named-pipes.conf", "SUPPLY_NAMED_PIPES"}));
}

TEST_F(OptionsTest, TheTimeLimitMustBeANumberAboveZero) {
    for (const char *text : {"0", "-1", "soon", "1s", "nan", "inf"}) {
        EnvironmentVariable timeout{"SUPPLY_TIMEOUT", text};
        options.timeout = 0;
        EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve()) << text;
    }
    for (double seconds : {-1.0, 2e9, 0.0 / 0.0}) {
        options.timeout = seconds;
        EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve()) << seconds;
    }
    options.timeout = 0;
    ASSERT_EQ(SUPPLY_OK, resolve());
    EXPECT_EQ(120, settings.timeout);
}

struct Sizes {
    const char *line;
    uint64_t ring_option, block_option;
    uint64_t block_bytes, block_count; /* 0: refused */
};

TEST_F(OptionsTest, TheRingHoldsWholeBlocksAndAtLeastTwo) {
    const uint64_t KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30;
    const Sizes all[] = {
        {"", 0, 0, 2 * MiB, 4},
        {"ring=32MiB", 0, 0, 8 * MiB, 4},
        {"block=1MiB", 0, 0, 1 * MiB, 4},
        {"ring=32MiB block=1MiB", 0, 0, 1 * MiB, 32},
        {"ring=32MiB block=1MiB", 64 * MiB, 0, 1 * MiB, 64},
        {"ring=32MiB block=1MiB", 0, 2 * MiB, 2 * MiB, 16},
        {"ring=5000", 0, 0, 4096, 2},
        {"ring=8KiB block=1", 0, 0, 4096, 2},
        {"ring=9KiB block=4097", 0, 0, 8192, 2},
        {"block=1GiB", 0, 0, 1 * GiB, 4},
        {"ring=16GiB", 0, 0, 1 * GiB, 16},
        {"ring=4KiB block=4KiB", 0, 0, 0, 0},
        {"ring=1MiB block=4MiB", 0, 0, 0, 0},
        {"ring=1", 0, 0, 0, 0},
        {"", 0, 1 * GiB + 1, 0, 0},
        {"", UINT64_MAX, 0, 0, 0},
        {"", 1ull << 62, 4096, 0, 0},
        {"", 0, UINT64_MAX, 0, 0},
        {"ring=64KiB", 4 * KiB, 0, 0, 0},
    };
    for (const Sizes &sizes : all) {
        use_config_files(sizes.line);
        options.ring_bytes = sizes.ring_option;
        options.block_bytes = sizes.block_option;
        const std::string name = std::string(sizes.line) + " " + std::to_string(sizes.ring_option) + " " +
                                 std::to_string(sizes.block_option);
        if (sizes.block_count != 0) {
            ASSERT_EQ(SUPPLY_OK, resolve()) << name << ": " << failure.text;
            EXPECT_EQ(sizes.block_bytes, settings.block_bytes) << name;
            EXPECT_EQ(sizes.block_count, settings.block_count) << name;
        } else {
            EXPECT_EQ(SUPPLY_ERROR_CONFIG, resolve()) << name;
            EXPECT_TRUE(says(failure.text, {"mapped-files.conf:2", "ring", "block"})) << name;
        }
    }
}

TEST_F(OptionsTest, AnAutomaticRingHasBlocksOfTheDefaultSizeAndLosesToTheOption) {
    use_config_files("ring=auto");
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(2u << 20, settings.block_bytes);
    EXPECT_GE(settings.block_count, 2u);
    EXPECT_LE(settings.block_count, 8u);
    use_config_files("ring=auto block=1GiB");
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(4u, settings.block_count);
    options.ring_bytes = 64 << 20;
    options.block_bytes = 1 << 20;
    ASSERT_EQ(SUPPLY_OK, resolve()) << failure.text;
    EXPECT_EQ(64u, settings.block_count);
}

struct Launcher {
    const char *local_rank, *rank;
};

TEST(LauncherTest, EachLauncherTellsItsRanks) {
    const Launcher launchers[] = {{"LOCAL_RANK", "RANK"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK"},
                                  {"MPI_LOCALRANKID", "PMI_RANK"},
                                  {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_RANK"},
                                  {"PALS_LOCAL_RANKID", "PALS_RANKID"},
                                  {"FLUX_TASK_LOCAL_ID", "FLUX_TASK_RANK"},
                                  {"SLURM_LOCALID", "SLURM_PROCID"}};
    EnvironmentVariable cleared[] = {{"LOCAL_RANK", nullptr},
                                     {"RANK", nullptr},
                                     {"WORLD_SIZE", nullptr},
                                     {"OMPI_COMM_WORLD_LOCAL_RANK", nullptr},
                                     {"OMPI_COMM_WORLD_RANK", nullptr},
                                     {"MPI_LOCALRANKID", nullptr},
                                     {"PMI_RANK", nullptr},
                                     {"SLURM_LOCALID", nullptr},
                                     {"SLURM_PROCID", nullptr}};
    EXPECT_EQ(-1, supply_local_rank());
    EXPECT_EQ(-1, supply__launcher_rank());
    for (const Launcher &launcher : launchers) {
        EnvironmentVariable local_rank{launcher.local_rank, "2"}, rank{launcher.rank, "12"};
        EXPECT_EQ(2, supply_local_rank()) << launcher.local_rank;
        EXPECT_EQ(12, supply__launcher_rank()) << launcher.rank;
    }
    for (const char *text : {"", "-1", "two", "1x", "99999999999"}) {
        EnvironmentVariable local_rank{"OMPI_COMM_WORLD_LOCAL_RANK", text};
        EXPECT_EQ(-1, supply_local_rank()) << text;
    }
    EnvironmentVariable open_mpi{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, slurm{"SLURM_LOCALID", "0"};
    EXPECT_EQ(1, supply_local_rank()) << "Open MPI is nearer to the rank than Slurm";
    EnvironmentVariable torchrun{"LOCAL_RANK", "3"}, torchrun_rank{"RANK", "7"}, slurm_rank{"SLURM_PROCID", "0"};
    EXPECT_EQ(1, supply_local_rank()) << "LOCAL_RANK is left over: torchrun sets WORLD_SIZE, too";
    EnvironmentVariable of_torchrun{"WORLD_SIZE", "8"};
    EXPECT_EQ(3, supply_local_rank()) << "srun torchrun: every worker has Slurm's variables of their common task";
    EXPECT_EQ(7, supply__launcher_rank());
}

} // namespace
} // namespace supply_test
