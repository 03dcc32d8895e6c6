// The socket of supply-server: whose file it is, and how long a program may hold it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <atomic>
#include <thread>
#include <unistd.h>

#include "rank.h"

extern "C" {
#include "channel.h"
}

namespace supply_test {
namespace {

/** A channel that is not open. */
struct channel none() {
    struct channel channel = {};
    channel.folder = channel.listening = channel.connection = -1;
    return channel;
}

class ChannelTest : public ::testing::Test {
  protected:
    ~ChannelTest() override {
        channel_close(&channel);
        for (const int fd : others) close(fd);
    }

    bool open() {
        const std::string of = path.substr(0, path.rfind('/'));
        return channel_open(&channel, ::open(of.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), path.c_str(), text,
                            sizeof text);
    }

    static sockaddr_un address_of(const std::string &file) {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        snprintf(address.sun_path, sizeof address.sun_path, "%s", file.c_str());
        return address;
    }

    int connected(int flags = 0) {
        const sockaddr_un address = address_of(path);
        others.push_back(socket(AF_UNIX, SOCK_STREAM | flags, 0));
        return connect(others.back(), reinterpret_cast<const sockaddr *>(&address), sizeof address);
    }

    /** A socket of another server, which accepts nothing. */
    int listening(int backlog) {
        const sockaddr_un address = address_of(path);
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        others.push_back(fd);
        EXPECT_EQ(0, bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address));
        EXPECT_EQ(0, listen(fd, backlog));
        return fd;
    }

    TemporaryFolder folder;
    std::string path = folder.file("pair-0.mapped.server");
    struct channel channel = none();
    char text[1024] = "";
    std::vector<int> others;
};

double thread_cpu_seconds() {
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

// A program that connects stays in the queue, so that poll() returns at once.
TEST_F(ChannelTest, WithoutDescriptorsItWaitsAndDoesNotSpin) {
    ASSERT_TRUE(open()) << text;
    channel.peer_seconds = 10;
    ASSERT_EQ(0, connected());
    ASSERT_EQ(3, send(others.back(), "{}\n", 3, 0));
    rlimit before;
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    /* The sanitizer needs descriptors when a thread begins. */
    std::atomic<bool> is_limited{false}, has_begun{false};
    std::thread waiter([&] {
        has_begun = true;
        while (!is_limited) usleep(1000);
        usleep(1000000);
        setrlimit(RLIMIT_NOFILE, &before);
    });
    while (!has_begun) usleep(1000);
    const int next = dup(0);
    close(next);
    rlimit none_left = before;
    none_left.rlim_cur = static_cast<rlim_t>(next);
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none_left));
    const double started = thread_cpu_seconds();
    is_limited = true;
    json_t *command = channel_next(&channel, nullptr, nullptr);
    const double used = thread_cpu_seconds();
    waiter.join();
    EXPECT_TRUE(json_is_object(command));
    json_decref(command);
    EXPECT_GT(0.5, used - started) << "it has kept a core busy";
}

TEST_F(ChannelTest, IsOfItsUserAlone) {
    struct stat entry;
    ASSERT_TRUE(open()) << text;
    ASSERT_EQ(0, stat(path.c_str(), &entry));
    EXPECT_TRUE(S_ISSOCK(entry.st_mode));
    EXPECT_EQ(0u, entry.st_mode & (S_IRWXG | S_IRWXO));
    channel_close(&channel);
    channel = none();
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(ChannelTest, TheSocketOfADeadServerIsReplaced) {
    close(listening(1));
    others.clear();
    EXPECT_TRUE(open()) << text;
    EXPECT_EQ(0, connected());
}

TEST_F(ChannelTest, ALivingServerKeepsItsSocket) {
    listening(1);
    EXPECT_FALSE(open());
    EXPECT_TRUE(says(text, {path.c_str(), "in use by another supply-server"}));
    EXPECT_EQ(0, connected());
}

TEST_F(ChannelTest, AStoppedServerWithAFullBacklogIsInUse) {
    listening(0);
    while (connected(SOCK_NONBLOCK) == 0) continue;
    ASSERT_EQ(EAGAIN, errno);
    EXPECT_FALSE(open());
    EXPECT_TRUE(says(text, {"in use by another supply-server"}));
}

TEST_F(ChannelTest, AFileThatIsNoSocketStays) {
    folder.write("pair-0.mapped.server", "the user's own");
    EXPECT_FALSE(open());
    EXPECT_TRUE(says(text, {path.c_str(), "no socket of this user", "remove it"}));
    EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(ChannelTest, LiesInTheFolderThatWasOpened) {
    const std::string checked = folder.file("checked");
    ASSERT_EQ(0, mkdir(checked.c_str(), 0700));
    path = checked + "/socket";
    const int opened = ::open(checked.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    std::filesystem::rename(checked, folder.file("moved"));
    ASSERT_EQ(0, mkdir(checked.c_str(), 0700));
    ASSERT_TRUE(channel_open(&channel, opened, path.c_str(), text, sizeof text)) << text;
    EXPECT_TRUE(std::filesystem::is_empty(checked));
    EXPECT_TRUE(std::filesystem::is_socket(folder.file("moved") + "/socket"));
}

TEST_F(ChannelTest, LeavesTheSocketOfALaterServer) {
    ASSERT_TRUE(open()) << text;
    ASSERT_EQ(0, unlink(path.c_str()));
    listening(1);
    channel_close(&channel);
    channel = none();
    EXPECT_EQ(0, connected());
}

TEST_F(ChannelTest, OfManyServersThatStartTogetherOneIsReached) {
    constexpr int SERVERS = 8;
    close(listening(1));
    others.clear();
    std::vector<struct channel> channels(SERVERS, none());
    std::vector<std::thread> starts;
    std::atomic<int> opened{0};
    for (struct channel &one : channels)
        starts.emplace_back([&] {
            char why[1024];
            opened += channel_open(&one, ::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), path.c_str(),
                                   why, sizeof why);
        });
    for (std::thread &start : starts) start.join();
    EXPECT_EQ(1, opened);
    EXPECT_EQ(0, connected());
    for (struct channel &one : channels) channel_close(&one);
    EXPECT_TRUE(folder.is_empty());
}

/* It sends a byte now and then: its time is that of the whole command. */
TEST_F(ChannelTest, ASlowProgramDoesNotHoldTheServer) {
    ASSERT_TRUE(open()) << text;
    channel.peer_seconds = 0.5;
    ASSERT_EQ(0, connected());
    std::atomic<bool> is_over{false};
    std::thread slow([&, first = others[0]] {
        while (!is_over && send(first, " ", 1, MSG_NOSIGNAL) == 1)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    ASSERT_EQ(0, connected());
    const std::string command = "{\"command\":\"next\"}\n";
    ASSERT_EQ(ssize_t(command.size()), send(others[1], command.data(), command.size(), 0));
    json_t *got = channel_next(&channel, nullptr, nullptr);
    EXPECT_STREQ("next", json_string_value(json_object_get(got, "command")));
    json_decref(got);
    is_over = true;
    slow.join();
}

} // namespace
} // namespace supply_test
