// supply-clean --resident-folder as a program.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "resident_file.h"
#include "tool_test.h"

extern "C" {
#include "base/file_lock.h"
#include "clean_resident_files.h"
}

namespace supply_test {
namespace {

namespace fs = std::filesystem;

/** A folder for resident files of pair 0. */
class CleanResidentFilesTest : public ToolTest {
  protected:
    CleanResidentFilesTest() { fs::create_directory(resident); }

    /** Of a task that lives, as its pid says. */
    std::string write(const std::string &path, uint32_t file_use = FILE_USE_RESIDENT) const {
        ResidentFileImage image({}, {}, 4096, 7);
        image.header().task_pid = static_cast<uint32_t>(getpid());
        image.header().file_use = file_use;
        std::ofstream(path, std::ios::binary) << image.bytes();
        return path;
    }

    std::string path_of(const char *suffix) const { return path_in(resident, suffix); }

    std::string path_in(const std::string &of, const char *suffix) const {
        named_path mapped_file = {const_cast<char *>(pairs[0].mapped_file.c_str()), nullptr};
        char *path = resident_file_path(of.c_str(), &mapped_file, suffix);
        const std::string text = path;
        free(path);
        return text;
    }

    Ended clean(const std::vector<std::string> &more = {}) const {
        std::vector<std::string> all = {"--resident-folder", resident};
        all.insert(all.end(), more.begin(), more.end());
        return run(SUPPLY_TEST_CLEAN, all);
    }

    bool both_exist() const { return fs::exists(sealed) && fs::exists(unsealed); }

    void write_both() const {
        write(sealed);
        write(unsealed);
    }

    const std::string resident = folder.file("resident");
    const std::string sealed = path_of(".resident"), unsealed = path_of(".resident.unsealed");
};

TEST_F(CleanResidentFilesTest, RemovesThoseOfDeadRanks) {
    write_both();
    leave_stale_pair(0);
    const std::string name = fs::path(pairs[0].mapped_file).filename();
    const std::string others[] = {resident + "/0123456789abcdef-0123456789abcdef.0.kept", resident + "/x.resident",
                                  resident + "/" + name + ".resident",
                                  resident + "/" + name + ".0123456789abcdef.resident"};
    for (const std::string &other : others) write(other);
    const Ended tried = clean({"--dry-run"});
    EXPECT_EQ(lines_of(0) + sealed + "\n" + unsealed + "\n", tried.out);
    EXPECT_TRUE(both_exist());
    EXPECT_EQ(lines_of(0), run(SUPPLY_TEST_CLEAN).out) << "without the option, they stay";
    const Ended ended = clean();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ(sealed + "\n" + unsealed + "\n", ended.out);
    EXPECT_FALSE(fs::exists(sealed) || fs::exists(unsealed));
    for (const std::string &other : others) EXPECT_TRUE(fs::exists(other)) << other;
}

TEST_F(CleanResidentFilesTest, RemovesThoseBesideTheMappedFile) {
    const std::string beside = fs::path(pairs[0].mapped_file).parent_path();
    write(path_in(beside, ".resident"));
    write(path_in(beside, ".resident.unsealed"));
    const Ended ended = run(SUPPLY_TEST_CLEAN, {});
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_FALSE(fs::exists(path_in(beside, ".resident")) || fs::exists(path_in(beside, ".resident.unsealed")));
}

TEST_F(CleanResidentFilesTest, TheNameHasAHashOfTheMappedFilesPath) {
    const std::string named = write(resident + "/pair.mapped.52fdb57146114085.resident");
    config[1] = folder.write("mapped-files.conf", "/supply-clean-test/none/pair.mapped ring=32KiB\n");
    config[3] =
        folder.write("named-pipes.conf", "/supply-clean-test/none/request /supply-clean-test/none/notification\n");
    const Ended ended = clean();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ(named + "\n", ended.out);
}

TEST_F(CleanResidentFilesTest, RemovesAFileWithoutAHeader) {
    write(unsealed);
    fs::resize_file(unsealed, 0);
    EXPECT_EQ(unsealed + "\n", clean().out);
}

TEST_F(CleanResidentFilesTest, LeavesThoseOfReaders) {
    write(sealed);
    const int reader = ::open(sealed.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(0, supply__file_lock(reader, F_RDLCK, READER_LOCK_BYTE));
    const bool has_lease = fcntl(reader, F_SETLEASE, F_RDLCK) == 0;
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ("", ended.out);
    EXPECT_TRUE(says(ended.err, {sealed.c_str(), "read by a rank"}));
    EXPECT_TRUE(fs::exists(sealed));
    EXPECT_EQ(has_lease ? F_RDLCK : F_UNLCK, fcntl(reader, F_GETLEASE)) << "the cleaner does not break a lease";
    close(reader);
}

TEST_F(CleanResidentFilesTest, LeavesWhatIsNoResidentFile) {
    write(sealed, FILE_USE_RESULT);
    fs::create_symlink(sealed, unsealed);
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ("", ended.out);
    EXPECT_TRUE(says(ended.err, {"not made by Spark", "cannot be opened"}));
    EXPECT_TRUE(both_exist());
}

TEST_F(CleanResidentFilesTest, LeavesThoseOfALivePair) {
    write_both();
    Process living(rank(0), folder.path());
    Task task(pairs[0]);
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {sealed.c_str(), unsealed.c_str(), "whose rank is alive"}));
    EXPECT_TRUE(both_exist());
    task.end_of_data(0);
    task.see_end();
    EXPECT_EQ(0, living.wait().exit_status);
}

TEST_F(CleanResidentFilesTest, LeavesThoseOfARankThatMayBeAlive) {
    write_both();
    fs::create_symlink(folder.file("elsewhere"), pairs[0].mapped_file);
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ("", ended.out);
    EXPECT_TRUE(says(ended.err, {sealed.c_str(), "may be in use", pairs[0].mapped_file.c_str(), "by hand"}));
    EXPECT_TRUE(both_exist());
}

/** The executors' user, who is this one, is not the user of the ranks. */
class CleanOfTwoUsersTest : public CleanResidentFilesTest {
  protected:
    static constexpr uid_t user_id = 61001;

    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "needs root, to give files to another user";
    }

    void give(const std::string &path, uid_t user) const { ASSERT_EQ(0, chown(path.c_str(), user, user)); }
};

TEST_F(CleanOfTwoUsersTest, ThePairsFolderBelongsToAnother) {
    write_both();
    leave_stale_pair(0);
    give(folder.path(), user_id);
    Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status) << "the pair's own files are left";
    EXPECT_TRUE(says(ended.err, {pairs[0].mapped_file.c_str(), "another user"}));
    EXPECT_EQ(sealed + "\n" + unsealed + "\n", ended.out);
    write_both();
    fs::remove(pairs[0].mapped_file);
    EXPECT_EQ(ended.out, clean().out) << "its user has cleaned them";
}

TEST_F(CleanOfTwoUsersTest, ThePairOfAnotherIsAlive) {
    write_both();
    Process living(rank(0), folder.path());
    Task task(pairs[0]);
    give(folder.path(), user_id);
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ("", ended.out);
    EXPECT_TRUE(says(ended.err, {sealed.c_str(), "whose rank is alive"}));
    EXPECT_TRUE(both_exist());
    give(folder.path(), 0);
    task.end_of_data(0);
    task.see_end();
    EXPECT_EQ(0, living.wait().exit_status);
}

TEST_F(CleanOfTwoUsersTest, TheResidentFileBelongsToAnother) {
    write(sealed);
    give(sealed, user_id);
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ("", ended.out);
    EXPECT_TRUE(says(ended.err, {sealed.c_str(), "uid 61001", "have that user run supply-clean"}));
    EXPECT_TRUE(fs::exists(sealed));
}

} // namespace
} // namespace supply_test
