// Results: their files, locks and folders, from the claim (W1) to the seal (W4) or the abort (W5).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "forked.h"
#include "result_rows.h"

extern "C" {
#include "base/file_lock.h"
}

namespace supply_test {
namespace {

class ResultFileTest : public ResultTest {
  protected:
    std::string unsealed(const std::string &name = "scores") const { return path(name) + ".unsealed"; }

    static mapped_file_header header_of(const std::string &file) {
        mapped_file_header header;
        const std::string bytes = read_file(file);
        EXPECT_GE(bytes.size(), sizeof header);
        memcpy(static_cast<void *>(&header), bytes.data(), sizeof header);
        return header;
    }
    static bool is_locked(const std::string &file) {
        const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
        EXPECT_GE(fd, 0);
        const bool locked = supply__file_is_locked(fd, F_RDLCK, RANK_LOCK_BYTE);
        close(fd);
        return locked;
    }
    static mode_t mode_of(const std::string &file) {
        struct stat entry = {};
        EXPECT_EQ(0, stat(file.c_str(), &entry)) << file;
        return entry.st_mode & 07777;
    }

    const std::vector<Column> rows = {Column::int32("id", {1, 2, 3})};
};

TEST_F(ResultFileTest, IsUnsealedAndLockedUntilItIsSealed) {
    Handle handle = open();
    Result result = begin(handle, rows);
    EXPECT_EQ(path(), supply_result_path(result.get()));
    write(result, rows, 3);
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_TRUE(is_locked(unsealed()));
    EXPECT_EQ(0600u, mode_of(unsealed()));
    const mapped_file_header before = header_of(unsealed());
    EXPECT_EQ(0u, before.sealed);
    EXPECT_EQ(VERSION, before.version);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), before.rank_pid);
    seal(result);
    EXPECT_FALSE(std::filesystem::exists(unsealed()));
    EXPECT_FALSE(is_locked(path()));
    EXPECT_EQ(3u, read_result(path()).header.epoch_elements);
}

TEST_F(ResultFileTest, OutlivesItsPair) {
    Handle handle = open();
    Result result = begin(handle, rows);
    handle.reset();
    write(result, rows, 3);
    seal(result);
    EXPECT_EQ(3u, read_result(path()).header.epoch_elements);
}

TEST_F(ResultFileTest, SaysWhyItWasAborted) {
    Handle handle = open();
    Result result = begin(handle, rows);
    write(result, rows, 3);
    ASSERT_EQ(SUPPLY_OK, supply_result_abort(result.release(), "the model\nis gone"));
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_FALSE(is_locked(unsealed()));
    const mapped_file_header header = header_of(unsealed());
    EXPECT_EQ(uint32_t{SEALED_ABORTED}, header.sealed);
    EXPECT_STREQ("the model is gone", header.rank_failure);

    Result again = begin(handle, rows);
    write(again, rows, 3);
    seal(again);
    EXPECT_EQ(3u, read_result(path()).header.epoch_elements);
    EXPECT_FALSE(std::filesystem::exists(unsealed()));
}

TEST_F(ResultFileTest, ASealedOneIsNotWrittenAgain) {
    Handle handle = open();
    Result result = begin(handle, rows);
    seal(result);
    const std::string before = read_file(path());
    Result again = begin(handle, rows, "scores", SUPPLY_ERROR_ARGUMENT);
    EXPECT_TRUE(says(supply_result_error(again.get()), {path().c_str(), "is sealed", "name of its own"}));
    EXPECT_EQ(before, read_file(path()));
    EXPECT_FALSE(std::filesystem::exists(unsealed()));
}

TEST_F(ResultFileTest, OneThatIsWrittenIsNotBegunAgain) {
    Handle handle = open();
    Result result = begin(handle, rows);
    Result again = begin(handle, rows, "scores", SUPPLY_ERROR_IN_USE);
    EXPECT_TRUE(says(supply_result_error(again.get()), {unsealed().c_str(), std::to_string(getpid()).c_str()}));
    seal(result);
    EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(ResultFileTest, OneWhoseNameLeadsToAnotherFileIsNotSealed) {
    Handle handle = open();
    Result result = begin(handle, rows);
    unlink(unsealed().c_str());
    std::ofstream(unsealed()) << "another's";
    EXPECT_EQ(SUPPLY_ERROR_SYSTEM, supply_result_seal(result.get()));
    EXPECT_TRUE(says(supply_result_error(result.get()), {unsealed().c_str(), "cannot be sealed"}));
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_EQ("another's", read_file(unsealed()));
}

TEST_F(ResultFileTest, AChildThatLivesLongerDoesNotKeepTheLock) {
    Handle handle = open();
    Result result = begin(handle, rows);
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    seal(result);
    EXPECT_FALSE(is_locked(path()));
    close(ends[0]);
    close(ends[1]);
    waitpid(child, nullptr, 0);
}

TEST_F(ResultFileTest, TheNextOpeningOfThePairRemovesOnlyItsOwn) {
    {
        Handle handle = open();
        Result sealed = begin(handle, rows, "sealed"), aborted = begin(handle, rows, "aborted");
        seal(sealed);
    }
    const std::vector<std::string> others = {"mapped.other.sealed.result",
                                             "mapped2.sealed.result",
                                             "mapped.sealed.results",
                                             "mapped.result",
                                             "mapped..result",
                                             "other.sealed.result"};
    for (const std::string &other : others) folder.write(other, "");
    const int reader = ::open(path("sealed").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(0, supply__file_lock(reader, F_RDLCK, READER_LOCK_BYTE));
    Handle handle = open();
    EXPECT_FALSE(std::filesystem::exists(path("sealed")));
    EXPECT_FALSE(std::filesystem::exists(unsealed("aborted")));
    for (const std::string &other : others) EXPECT_TRUE(std::filesystem::exists(folder.file(other))) << other;
    close(reader);
}

TEST_F(ResultFileTest, AFileThatNoRankMadeStopsTheOpeningOfThePair) {
    const std::string foreign = folder.write("mapped.scores.result", "somebody's precious data");
    Handle refused = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(refused.get()), {foreign.c_str(), "not made by a rank"}));
    EXPECT_EQ("somebody's precious data", read_file(foreign));
    EXPECT_FALSE(std::filesystem::exists(files.mapped_file));
}

TEST_F(ResultFileTest, AResultThatIsStillWrittenStopsTheOpeningOfThePair) {
    Handle handle = open();
    Result result = begin(handle, rows);
    handle.reset();
    Handle refused = open(SUPPLY_ERROR_IN_USE);
    EXPECT_TRUE(says(supply_error(refused.get()), {unsealed().c_str(), std::to_string(getpid()).c_str()}));
    seal(result);
    open();
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ResultFileTest, WhatAKilledRankLeftIsReplaced) {
    const int status = run_forked([&] {
        Handle handle = open();
        Result result = begin(handle, rows);
        write(result, rows, 3);
        raise(SIGKILL);
        return 0;
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(std::filesystem::exists(unsealed()));
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_FALSE(is_locked(unsealed()));
    Handle handle = open();
    EXPECT_FALSE(std::filesystem::exists(unsealed()));
    Result result = begin(handle, rows);
    seal(result);
}

TEST_F(ResultFileTest, TheFolderIsThatOfTheOptionsThenOfTheEnvironment) {
    const std::string of_options = folder.file("of/options"), of_environment = folder.file("of-environment");
    EnvironmentVariable environment("SUPPLY_RESULTS_FOLDER", (of_environment + "//").c_str());
    {
        Handle handle = open();
        Result result = begin(handle, rows);
        EXPECT_EQ(of_environment + "/mapped.scores.result", supply_result_path(result.get()));
        seal(result);
        EXPECT_TRUE(std::filesystem::exists(of_environment + "/mapped.scores.result"));
        EXPECT_EQ(0700u, mode_of(of_environment));
    }
    {
        options.results_folder = of_options.c_str();
        Handle handle = open();
        Result result = begin(handle, rows);
        EXPECT_EQ(of_options + "/mapped.scores.result", supply_result_path(result.get()));
        EXPECT_TRUE(std::filesystem::exists(of_environment + "/mapped.scores.result"));
    }
    options.results_folder = nullptr;
    open();
    EXPECT_FALSE(std::filesystem::exists(of_environment + "/mapped.scores.result"));
}

TEST_F(ResultFileTest, TheFolderMustBeOfThisUserAlone) {
    const std::string open_to_all = folder.file("open");
    std::filesystem::create_directory(open_to_all);
    ASSERT_EQ(0, chmod(open_to_all.c_str(), 0777));
    options.results_folder = open_to_all.c_str();
    Handle handle = open();
    Result refused = begin(handle, rows, "scores", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_result_error(refused.get()), {open_to_all.c_str(), "other users", "0777"}));
    handle.reset();
    options.results_folder = "relative";
    Handle relative = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(relative.get()), {"folder of results", "'relative'", "absolute"}));
    const std::string file = folder.write("file", "");
    options.results_folder = file.c_str();
    Handle no_folder = open(SUPPLY_ERROR_SYSTEM);
    EXPECT_TRUE(says(supply_error(no_folder.get()), {file.c_str(), "cannot be listed", "SUPPLY_RESULTS_FOLDER"}));
}

TEST_F(ResultFileTest, AGroupMayReadIt) {
    const std::string group = std::to_string(getegid());
    options.group = group.c_str();
    Handle handle = open();
    Result result = begin(handle, rows);
    EXPECT_EQ(0640u, mode_of(unsealed()));
    seal(result);
    EXPECT_EQ(0640u, mode_of(path()));
}

} // namespace
} // namespace supply_test
