// Who else may use a pair: nobody, or with a group its members; tried by processes of those users.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <regex>

#include "base/file_lock.h"
#include "consume.h"
#include "rank.h"
#include "user_process.h"

namespace supply_test {
namespace {

constexpr gid_t feeders = 61000;
const User alice{61001, {feeders}};
const User bob{61002, {feeders}};
const User carol{61003, {}};

class UsersTest : public RankTest {
  protected:
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "needs root, to start processes of other users";
        ASSERT_EQ(0, chmod(folder.path().c_str(), 0755));
        home = folder.file("alice");
        ASSERT_EQ(0, mkdir(home.c_str(), 0755));
        ASSERT_EQ(0, chown(home.c_str(), alice.id, alice.id));
        files = {home + "/run/mapped", home + "/run/request", home + "/run/notification"};
        options.mapped_file = files.mapped_file.c_str();
        options.request_pipe = files.request_pipe.c_str();
        options.notification_pipe = files.notification_pipe.c_str();
    }

    std::vector<std::string> paths() const { return {files.mapped_file, files.request_pipe, files.notification_pipe}; }

    /** Opens the pair and returns the error's text, or "opened" and leaves the pair as a process that dies does. */
    std::string try_to_open() const {
        supply_t *supply;
        return supply_open(&supply, &options) == SUPPLY_OK ? "opened" : supply_error(supply);
    }

    std::string consume() const { return consume_until(SUPPLY_END_OF_DATA, options); }

    /** The task's whole side. */
    std::string feed() const {
        Task task(files);
        for (uint64_t i = 0; i < 20; i++) supply_datums(task, 10 * i, 10);
        task.end_of_epoch(0);
        task.end_of_data(0);
        task.see_end();
        return "fed";
    }

    void wait_for_pair() const {
        wait_until("the pair", [&] {
            uint32_t version = 0;
            int fd = ::open(files.mapped_file.c_str(), O_RDONLY | O_CLOEXEC);
            if (fd < 0) return false;
            const bool ready = pread(fd, &version, sizeof version, 8) == sizeof version && version != 0;
            close(fd);
            return ready;
        });
    }

    /** What of all that could disturb a pair this process may do; "" if nothing. */
    std::string try_to_change_names() const {
        std::string done;
        const std::string run = home + "/run";
        for (const std::string &path : paths()) {
            if (rename(path.c_str(), (path + ".old").c_str()) == 0) done += " renamed " + path;
            if (unlink(path.c_str()) == 0) done += " removed " + path;
            if (chmod(path.c_str(), 0666) == 0) done += " chmodded " + path;
        }
        if (creat((run + "/new").c_str(), 0600) >= 0) done += " created a file";
        if (rename(run.c_str(), (home + "/moved").c_str()) == 0) done += " moved the folder";
        if (rmdir(run.c_str()) == 0) done += " removed the folder";
        if (chmod(run.c_str(), 0777) == 0) done += " chmodded the folder";
        return done;
    }

    std::string try_to_look_in() const {
        std::string done;
        for (const std::string &path : paths()) {
            struct stat entry;
            for (int flags : {O_RDONLY, O_WRONLY})
                if (::open(path.c_str(), flags | O_NONBLOCK) >= 0) done += " opened " + path;
            if (stat(path.c_str(), &entry) == 0) done += " saw " + path;
        }
        if (opendir((home + "/run").c_str()) != nullptr) done += " listed the folder";
        return done;
    }

    /** Takes each name of the pair that is free, by files that would lead the rank astray, until it is killed. */
    std::string race_for_names(const std::string &prey) const {
        alarm(120);
        for (;;) {
            for (const std::string &path : paths()) {
                const bool linked = symlink(prey.c_str(), path.c_str()) == 0;
                usleep(50);
                if (linked) unlink(path.c_str());
                const bool made = mkfifo(path.c_str(), 0666) == 0 || mknod(path.c_str(), S_IFREG | 0666, 0) == 0;
                usleep(50);
                if (made) unlink(path.c_str());
            }
        }
    }

    /** Opens the pair until it has been opened and refused often enough. "" if it never had a file of another user. */
    std::string open_against_race() const {
        int opened = 0, refused = 0;
        wait_until("both outcomes", [&] {
            supply_t *supply;
            const bool is_open = supply_open(&supply, &options) == SUPPLY_OK;
            const std::string refusal = is_open ? "" : supply_error(supply);
            for (const std::string &path : paths()) {
                struct stat entry;
                if (is_open && (lstat(path.c_str(), &entry) != 0 || entry.st_uid != alice.id || S_ISLNK(entry.st_mode)))
                    throw std::runtime_error("the rank uses another user's " + path);
            }
            supply_close(supply);
            (is_open ? opened : refused)++;
            if (!is_open &&
                !std::regex_search(refusal, std::regex("symbolic link|exists and is not|another (user|process)")))
                throw std::runtime_error(refusal);
            return opened >= 20 && refused >= 20;
        });
        return "";
    }

    void expect_access(const std::string &path, mode_t mode, gid_t group) const {
        struct stat entry;
        ASSERT_EQ(0, lstat(path.c_str(), &entry)) << path;
        EXPECT_EQ(mode, entry.st_mode & 07777) << path;
        EXPECT_EQ(alice.id, entry.st_uid) << path;
        EXPECT_EQ(group, entry.st_gid) << path;
    }

    std::string home;
};

TEST_F(UsersTest, ATaskOfTheGroupFeedsTheRank) {
    options.group = "61000";
    UserProcess rank(alice, [&] { return consume(); });
    EXPECT_EQ("fed", as_user(bob, [&] { return feed(); }));
    EXPECT_EQ("200 elements", rank.wait());
    EXPECT_TRUE(std::filesystem::is_empty(home + "/run"));
}

TEST_F(UsersTest, TheGroupGetsTheFilesAndNotTheNames) {
    options.group = "61000";
    UserProcess rank(alice, [&] { return consume(); });
    wait_for_pair();
    expect_access(home + "/run", 0750, feeders);
    for (const std::string &path : paths()) expect_access(path, 0660, feeders);
    EXPECT_EQ("", as_user(bob, [&] { return try_to_change_names(); }));
    EXPECT_EQ("fed", as_user(bob, [&] { return feed(); })) << "and the pair works on";
    EXPECT_EQ("200 elements", rank.wait());
}

TEST_F(UsersTest, WithoutAGroupNoOtherUserGetsIn) {
    UserProcess rank(alice, [&] { return consume(); });
    wait_for_pair();
    expect_access(home + "/run", 0700, alice.id);
    for (const std::string &path : paths()) expect_access(path, 0600, alice.id);
    EXPECT_EQ("", as_user(bob, [&] { return try_to_look_in() + try_to_change_names(); }));
    EXPECT_EQ("fed", as_user(alice, [&] { return feed(); }));
    EXPECT_EQ("200 elements", rank.wait());
}

TEST_F(UsersTest, AThirdUserReadsStopsAndRemovesNothing) {
    options.group = "61000";
    UserProcess rank(alice, [&] { return consume(); });
    wait_for_pair();
    EXPECT_EQ("", as_user(carol, [&] {
                  std::string done = try_to_look_in() + try_to_change_names();
                  if (kill(rank.pid(), SIGTERM) == 0) done += " ended the rank";
                  return done;
              }));
    const std::string refused = as_user(carol, [&] { return try_to_open(); });
    EXPECT_TRUE(says(refused, {files.mapped_file.c_str(), "folder", "uid 61001"}));
    EXPECT_EQ("fed", as_user(bob, [&] { return feed(); }));
    EXPECT_EQ("200 elements", rank.wait());
}

TEST_F(UsersTest, LeftoversBlockNotTheirOwnersNextRunAndAreNamedToOthers) {
    for (const char *group : {static_cast<const char *>(nullptr), "61000", static_cast<const char *>(nullptr)}) {
        options.group = group;
        for (int run = 0; run < 3; run++) EXPECT_EQ("opened", as_user(alice, [&] { return try_to_open(); }));
        const std::string refused = as_user(bob, [&] { return try_to_open(); });
        EXPECT_TRUE(says(refused, {files.mapped_file.c_str(), "another user, uid 61001"}));
        const std::string kept = as_user(bob, [&] {
            std::string error;
            return remove_stale(options, error) == SUPPLY_OK ? "removed" : error;
        });
        EXPECT_TRUE(says(kept, {files.mapped_file.c_str(), "another user, uid 61001"}));
        for (const std::string &path : paths()) EXPECT_EQ(0, access(path.c_str(), F_OK)) << path;
    }
    EXPECT_EQ("", as_user(alice, [&] {
                  std::string error;
                  return remove_stale(options, error) == SUPPLY_OK ? "" : error;
              }));
    EXPECT_TRUE(std::filesystem::is_empty(home + "/run"));
}

/* A member of the group can do so, and then the owner must know whom to look for. */
TEST_F(UsersTest, LeftoversThatAnotherProcessHasLocked) {
    options.group = "61000";
    ASSERT_EQ("opened", as_user(alice, [&] { return try_to_open(); }));
    const int fd = ::open(files.mapped_file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(0, supply__file_lock(fd, F_WRLCK, RANK_LOCK_BYTE));
    const std::string refused = as_user(alice, [&] { return try_to_open(); });
    EXPECT_TRUE(says(refused, {files.mapped_file.c_str(), "of the pair's group", "is not here", "lsof"}));
    close(fd);
    EXPECT_EQ("opened", as_user(alice, [&] { return try_to_open(); }));
}

TEST_F(UsersTest, AFolderIsOpenedToTheGroupAndNoWider) {
    const std::string run = home + "/run";
    ASSERT_EQ(0, mkdir(run.c_str(), 0700));
    ASSERT_EQ(0, chown(run.c_str(), alice.id, alice.id));
    options.group = "61000";
    const std::string refused = as_user(alice, [&] {
        setenv("HOME", run.c_str(), 1);
        return try_to_open();
    });
    EXPECT_TRUE(says(refused, {run.c_str(), "is the home folder"}));
    expect_access(run, 0700, alice.id);
    EXPECT_EQ("opened", as_user(alice, [&] { return try_to_open(); }));
    expect_access(run, 0750, feeders);
    options.group = "61001";
    EXPECT_EQ("opened", as_user(alice, [&] { return try_to_open(); }));
    expect_access(run, 0750, 61001);

    /* New files of such a folder get its group, or belong to their makers alone. */
    for (mode_t kept : {02000, 01000, 03000}) {
        options.group = "61000";
        ASSERT_EQ(0, chmod(run.c_str(), kept | 0700));
        EXPECT_EQ("opened", as_user(alice, [&] { return try_to_open(); }));
        expect_access(run, kept | 0750, feeders);
        ASSERT_EQ(0, chown(run.c_str(), alice.id, 61001));
    }

    ASSERT_EQ(0, chmod(run.c_str(), 0755));
    EXPECT_EQ("opened", as_user(alice, [&] { return try_to_open(); }));
    expect_access(run, 0755, 61001);
}

TEST_F(UsersTest, AGroupThatTheRankIsNotInIsNamed) {
    options.group = "61099";
    /* The folder as it is made; as it is there; and, in one that every group may enter, the file. */
    for (int round = 0; round < 3; round++) {
        if (round == 2) {
            ASSERT_EQ(0, chmod((home + "/run").c_str(), 0755));
        }
        const std::string refused = as_user(alice, [&] {
            supply_t *supply;
            const char *name = supply_status_name(supply_open(&supply, &options));
            return std::string(name) + " " + supply_error(supply);
        });
        EXPECT_TRUE(says(refused, {"SUPPLY_ERROR_CONFIG", files.mapped_file.c_str(), "61099", "Operation not permitted",
                                   "member", "group="}));
        EXPECT_EQ(round < 2, refused.find("its folder") != std::string::npos) << refused;
    }
    for (const std::string &path : paths()) EXPECT_NE(0, access(path.c_str(), F_OK)) << path;
}

TEST_F(UsersTest, AThirdUserWhoRacesForTheNamesInAStickyFolderGetsNothing) {
    const std::string run = home + "/run", prey = folder.write("prey", "precious");
    ASSERT_EQ(0, chown(prey.c_str(), alice.id, alice.id));
    ASSERT_EQ(0, mkdir(run.c_str(), 0700));
    ASSERT_EQ(0, chown(run.c_str(), alice.id, alice.id));
    ASSERT_EQ(0, chmod(run.c_str(), 01777));
    UserProcess racer(carol, [&] { return race_for_names(prey); });
    EXPECT_EQ("", as_user(alice, [&] { return open_against_race(); }));
    EXPECT_EQ("precious", read_file(prey));
}

TEST_F(UsersTest, RanksThatMakeTheFolderAtOnceAllShareIt) {
    options.group = "61000";
    for (int round = 0; round < 20; round++) {
        std::vector<std::unique_ptr<UserProcess>> ranks;
        for (int i = 0; i < 4; i++)
            ranks.push_back(std::make_unique<UserProcess>(alice, [&, i] {
                files.mapped_file += std::to_string(i);
                files.request_pipe += std::to_string(i);
                files.notification_pipe += std::to_string(i);
                options.mapped_file = files.mapped_file.c_str();
                options.request_pipe = files.request_pipe.c_str();
                options.notification_pipe = files.notification_pipe.c_str();
                return try_to_open();
            }));
        for (auto &rank : ranks) EXPECT_EQ("opened", rank->wait());
        expect_access(home + "/run", 0750, feeders);
        std::filesystem::remove_all(home + "/run");
    }
}

// group= of a config line, and the option that stands before it.

class GroupTest : public RankTest {
  protected:
    /** Opens by config files whose line has those words. */
    Handle open_line(const std::string &words, supply_status_t expected) {
        mapped_files = folder.write("mapped-files.conf", files.mapped_file + " " + words + "\n");
        named_pipes = folder.write("named-pipes.conf", files.request_pipe + " " + files.notification_pipe + "\n");
        options.mapped_file = options.request_pipe = options.notification_pipe = nullptr;
        options.mapped_files = mapped_files.c_str();
        options.named_pipes = named_pipes.c_str();
        return open(expected);
    }

    std::string mapped_files, named_pipes;
};

TEST_F(GroupTest, TheLinesGroupIsAskedFor) {
    Handle handle = open_line("ring=64KiB group=no-such-group block=4KiB", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {"mapped-files.conf:1", "no group 'no-such-group'", "group="}));
}

TEST_F(GroupTest, TheOptionWins) {
    options.group = "7no-such-group";
    Handle handle = open_line("group=root", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {"options", "no group '7no-such-group'"}));
}

TEST_F(GroupTest, ANumberThatIsNoneIsRefused) {
    for (const char *group : {"-1", "4294967295", "99999999999999999999", "1 ", "0x1", " 1"}) {
        options.group = group;
        Handle handle = open(SUPPLY_ERROR_CONFIG);
        EXPECT_TRUE(says(supply_error(handle.get()), {"no group", group}));
    }
}

TEST_F(GroupTest, AWordWithoutANameOrTwiceIsRefused) {
    Handle empty = open_line("group=", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(empty.get()), {"mapped-files.conf:1", "'group=' names no group"}));
    Handle twice = open_line("group=a group=b", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(twice.get()), {"mapped-files.conf:1", "'group=b'", "second"}));
}

} // namespace
} // namespace supply_test
