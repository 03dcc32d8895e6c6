// supply-doctor as a program: each check without a problem, and with the problem that it finds.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "forked.h"
#include "json.h"
#include "tool_test.h"
#include "user_process.h"

namespace supply_test {
namespace {

class SupplyDoctorTest : public ToolTest {
  protected:
    /** Runs it, and returns its JSON lines. */
    std::vector<Json> doctor(int exit_status, const std::vector<std::string> &more = {}) const {
        std::vector<std::string> arguments = {"--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Ended ended = run(SUPPLY_TEST_DOCTOR, arguments);
        EXPECT_EQ(exit_status, ended.exit_status) << ended.out;
        EXPECT_EQ("", ended.err);
        return findings_in(ended.out);
    }
    static std::vector<Json> findings_in(const std::string &lines) {
        std::vector<Json> findings;
        for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1)
            findings.emplace_back(lines.substr(begin, end - begin));
        return findings;
    }
    /** The texts and fixes of one check with one status. */
    static std::string reported(const std::vector<Json> &findings, const char *check, const char *status) {
        std::string report;
        for (const Json &finding : findings)
            if (finding["check"].text() == check && finding["status"].text() == status)
                report += finding["text"].text() + " fix: " + finding["fix"].text() + "\n";
        return report;
    }
    void write_mapped_files(const std::string &words) {
        folder.write("mapped-files.conf",
                     pairs[0].mapped_file + " " + words + "\n" + pairs[1].mapped_file + " " + words + "\n");
    }
};

TEST_F(SupplyDoctorTest, WithoutProblems) {
    const std::vector<Json> findings = doctor(0);
    EXPECT_TRUE(says(reported(findings, "libsupply", "ok"), {supply_version(), "contract 1.6"}));
    EXPECT_TRUE(says(reported(findings, "pairs", "ok"), {"2 pairs"}));
    EXPECT_TRUE(says(reported(findings, "space", "ok"), {"0.2 MB", "2 pairs"}));
    EXPECT_TRUE(says(reported(findings, "memory", "ok"), {"0.2 MB"}));
    EXPECT_TRUE(says(reported(findings, "temporary", "ok"), {"can be written"}));
    EXPECT_NE("", reported(findings, "threads", "ok") + reported(findings, "threads", "warning"));
    EXPECT_TRUE(says(reported(findings, "spark", "skipped"), {"launch/supply-doctor"}));
    EXPECT_FALSE(exists(0) || exists(1));
    EXPECT_TRUE(says(reported(doctor(0, {"--local-rank", "1"}), "space", "ok"), {"0.1 MB", "1 pair,"}));
}

/** From now on this process and its children may not call process_vm_readv(). */
bool forbid_copies() {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {4, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(SupplyDoctorTest, AContainerWhoseRanksMayNotCopyFromEachOther) {
    EXPECT_TRUE(says(reported(doctor(0), "copies", "ok"), {"read each other's memory"}));
    const int status = run_forked([&] {
        if (!forbid_copies()) return 2;
        const std::string report = reported(doctor(0), "copies", "warning");
        return says(report, {"Read -1", "SYS_PTRACE", "OMPI_MCA_btl_vader_single_copy_mechanism=none"}) ? 0 : 1;
    });
    if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this kernel has no seccomp filters";
    EXPECT_EQ(0, status);
}

TEST_F(SupplyDoctorTest, StaleAndLivePairsAreReportedAndNotTouched) {
    leave_stale_pair(0);
    Process living(rank(1), folder.path());
    Task task(pairs[1]);
    const std::string warnings = reported(doctor(0), "pairs", "warning");
    for (const std::string &path : paths_of(0)) EXPECT_TRUE(says(warnings, {path.c_str(), "dead", "supply-clean"}));
    EXPECT_TRUE(says(warnings, {pairs[1].mapped_file.c_str(), "in use", std::to_string(living.pid()).c_str()}));
    EXPECT_TRUE(exists(0));
    task.end_of_data(0);
    task.see_end();
    EXPECT_EQ(0, living.wait().exit_status) << "the living pair was disturbed";
    EXPECT_TRUE(says(reported(doctor(0), "space", "ok"), {"0.1 MB"})) << "what the stale one has is not needed again";
}

TEST_F(SupplyDoctorTest, InvalidSizes) {
    write_mapped_files("ring=4KiB block=8KiB");
    const std::vector<Json> findings = doctor(1);
    EXPECT_TRUE(says(reported(findings, "config", "failed"), {"mapped-files.conf:1", "mapped-files.conf:2", "ring="}));
}

TEST_F(SupplyDoctorTest, MoreThanTheMachineHas) {
    write_mapped_files("ring=1024GiB block=1GiB");
    const std::vector<Json> findings = doctor(1);
    EXPECT_TRUE(says(reported(findings, "space", "failed"), {"2199023.4 MB", "2 pairs", "ring=", "remount,size="}));
    EXPECT_TRUE(says(reported(findings, "memory", "warning"), {"2199023.4 MB"}));
}

TEST_F(SupplyDoctorTest, AFullTmpfs) {
    const std::string small = folder.file("small");
    ASSERT_EQ(0, mkdir(small.c_str(), 0700));
    if (mount("none", small.c_str(), "tmpfs", MS_NOSUID, "size=1m") != 0) GTEST_SKIP() << "cannot mount a tmpfs here";
    folder.write("mapped-files.conf",
                 small + "/run/a ring=800KiB block=8KiB\n" + small + "/run/b ring=400KiB block=8KiB\n");
    const std::string failed = reported(doctor(1), "space", "failed");
    EXPECT_TRUE(says(failed, {small.c_str(), "1.4 MB are needed for 2 pairs", "1.0 are free"}));
    EXPECT_EQ("", reported(doctor(0, {"--local-rank", "0"}), "space", "failed"));
    ASSERT_EQ(0, mount("none", small.c_str(), "tmpfs", MS_REMOUNT, "size=0"));
    EXPECT_TRUE(
        says(reported(doctor(0), "space", "ok"), {"1.4 MB are needed for 2 pairs", "the file system has no limit"}));
    umount(small.c_str());
}

TEST_F(SupplyDoctorTest, AReadOnlyFileSystem) {
    const std::string read_only = folder.file("read-only");
    ASSERT_EQ(0, mkdir(read_only.c_str(), 0700));
    if (mount(read_only.c_str(), read_only.c_str(), "none", MS_BIND, nullptr) != 0)
        GTEST_SKIP() << "cannot make a read-only mount here";
    ASSERT_EQ(0, mount(nullptr, read_only.c_str(), "none", MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr));
    folder.write("mapped-files.conf",
                 read_only + "/a ring=16KiB block=8KiB\n" + read_only + "/run/b ring=16KiB block=8KiB\n");
    const std::string failed = reported(doctor(1), "folders", "failed");
    EXPECT_TRUE(says(failed, {"it cannot be made in", "its folder cannot be made in", "Read-only file system",
                              "/dev/shm", "emptyDir"}));
    const Ended ended = Process({"env", "TMPDIR=" + read_only, SUPPLY_TEST_DOCTOR, "--json", "--mapped-files",
                                 config[1], "--named-pipes", config[3]},
                                folder.path())
                            .wait();
    EXPECT_TRUE(says(reported(findings_in(ended.out), "temporary", "warning"),
                     {read_only.c_str(), "Read-only file system", "TMPDIR", "emptyDir"}));
    umount(read_only.c_str());
}

TEST_F(SupplyDoctorTest, UnsafeFolders) {
    const std::string open = folder.file("open"), link = folder.file("link");
    ASSERT_EQ(0, mkdir(open.c_str(), 0700));
    ASSERT_EQ(0, chmod(open.c_str(), 0777));
    ASSERT_EQ(0, symlink(open.c_str(), link.c_str()));
    folder.write("mapped-files.conf", open + "/a\n" + link + "/b\n");
    const std::string failed = reported(doctor(1), "pairs", "failed");
    EXPECT_TRUE(
        says(failed, {"mapped-files.conf:1", open.c_str(), "chmod go-w", "mapped-files.conf:2", "symbolic link"}));
}

TEST_F(SupplyDoctorTest, AFileThatIsNotARanks) {
    folder.write("pair-1.mapped", "somebody's precious data");
    EXPECT_TRUE(says(reported(doctor(1), "pairs", "failed"), {pairs[1].mapped_file.c_str(), "not made by a rank"}));
}

TEST_F(SupplyDoctorTest, AFileSystemOnADisk) {
    folder.write("mapped-files.conf",
                 "/proc/self/a ring=16KiB block=8KiB\n" + pairs[1].mapped_file + " ring=16KiB block=8KiB\n");
    EXPECT_TRUE(
        says(reported(doctor(1, {"--local-rank", "0"}), "space", "warning"), {"/proc", "not on a tmpfs", "/dev/shm"}));
}

TEST_F(SupplyDoctorTest, AUserWhoCannotMakeTheFolder) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to start a process of another user";
    const User carol{61003, {61000}};
    const std::string tool = folder.file("doctor"), output = folder.file("output");
    std::filesystem::copy(SUPPLY_TEST_DOCTOR, tool);
    ASSERT_EQ(0, chmod(tool.c_str(), 0755));
    ASSERT_EQ(0, mkdir(output.c_str(), 0777));
    ASSERT_EQ(0, chmod(output.c_str(), 0777));
    ASSERT_EQ(0, chmod(folder.path().c_str(), 0755));
    ASSERT_EQ(0, mkdir(folder.file("closed").c_str(), 0700));
    const std::string run = folder.file("closed") + "/run/";
    const auto write = [&](const std::string &words) {
        folder.write("mapped-files.conf", run + "a " + words + "\n");
        folder.write("named-pipes.conf", run + "b " + run + "c\n");
        for (const std::string &file : {config[1], config[3]}) ASSERT_EQ(0, chmod(file.c_str(), 0640));
        for (const std::string &file : {config[1], config[3]}) ASSERT_EQ(0, chown(file.c_str(), 0, 61000));
    };
    const auto doctor_as_carol = [&] {
        return findings_in(as_user(carol, [&] {
            const Ended ended = Process(command(tool.c_str(), {"--json"}), output).wait();
            return ended.signal == 0 ? ended.out : "it crashed\n";
        }));
    };
    write("group=61000");
    std::vector<Json> findings = doctor_as_carol();
    EXPECT_TRUE(says(reported(findings, "folders", "failed"), {run.c_str(), "cannot be made in", "Permission denied"}));
    EXPECT_TRUE(
        says(reported(findings, "group", "warning"), {"the group 61000 cannot pass the folder", "closed", "g+x"}));
    ASSERT_EQ(0, chown(folder.file("closed").c_str(), carol.id, 61000));
    ASSERT_EQ(0, chmod(folder.file("closed").c_str(), 0710));
    findings = doctor_as_carol();
    EXPECT_EQ("", reported(findings, "folders", "failed") + reported(findings, "group", "warning"));
    EXPECT_NE("", reported(findings, "group", "ok"));
    ASSERT_EQ(0, chmod(config[1].c_str(), 0600));
    ASSERT_EQ(0, chown(config[1].c_str(), carol.id, 61000));
    EXPECT_TRUE(
        says(reported(doctor_as_carol(), "group", "warning"), {config[1].c_str(), "cannot be read by the group"}));
    write("group=61009");
    ASSERT_EQ(0, chmod(config[1].c_str(), 0644));
    EXPECT_TRUE(
        says(reported(doctor_as_carol(), "group", "failed"), {"uid 61003", "is not in the group 61009", "usermod"}));
}

TEST_F(SupplyDoctorTest, ChecksOfAnotherProgram) {
    const std::string file =
        folder.write("findings", "ok\tlmdb\tloads\t\nfailed\tjava\tis 11\tset JAVA_HOME\nnonsense\n");
    const std::vector<Json> findings = doctor(1, {"--findings", file});
    EXPECT_EQ("loads fix: \n", reported(findings, "lmdb", "ok"));
    EXPECT_EQ("is 11 fix: set JAVA_HOME\n", reported(findings, "java", "failed"));
    EXPECT_TRUE(says(reported(findings, "findings", "failed"), {file.c_str(), "'nonsense'"}));
    EXPECT_EQ("", reported(findings, "spark", "skipped"));
    EXPECT_TRUE(says(reported(doctor(1, {"--findings", folder.file("absent")}), "findings", "failed"),
                     {"absent", "cannot be read"}));
}

TEST_F(SupplyDoctorTest, TextForPeople) {
    write_mapped_files("ring=1024GiB block=1GiB");
    const Ended ended = run(SUPPLY_TEST_DOCTOR);
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.out, {"ok       pairs ", "failed   space ", "\n                     fix: set ring="}));
}

TEST_F(SupplyDoctorTest, ErrorsNameTheMistake) {
    EXPECT_EQ(2, run(SUPPLY_TEST_DOCTOR, {"--bogus"}).exit_status);
    EXPECT_EQ(2, run(SUPPLY_TEST_DOCTOR, {"argument"}).exit_status);
    EXPECT_EQ(2, Process({"env", "-u", "SUPPLY_MAPPED_FILES", SUPPLY_TEST_DOCTOR}, folder.path()).wait().exit_status);
    EXPECT_TRUE(says(reported(doctor(1, {"--local-rank", "7"}), "config", "failed"), {"7", "2 lines"}));
    folder.write("mapped-files.conf", "# nothing\n");
    folder.write("named-pipes.conf", "# nothing\n");
    EXPECT_TRUE(says(reported(doctor(1), "config", "failed"), {"no lines", "make-configs"}));
    config[1] = folder.file("absent.conf");
    EXPECT_TRUE(says(reported(doctor(1), "config", "failed"), {"absent.conf"}));
}

} // namespace
} // namespace supply_test
