// A rank of supply-server: the input is what programs send to its socket, a line for each connection. "@" stands for
// a folder of this fuzzer.
#include <mpi.h>
#include <sanitizer/lsan_interface.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "fuzzed_pair.h"

extern "C" {
#include "memory.h"
#include "supply_server.h"
}

using supply_fuzz::found;

namespace {

struct server fuzzed;
std::string folder;
sockaddr_un address = {};

void make_folder() {
    const char *parent = getenv("TMPDIR");
    folder = std::string(parent ? parent : "/tmp") + "/supply-fuzz-commands-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) found("mkdtemp failed");
}

void write_file(const std::string &path, const std::string &text) {
    FILE *file = fopen(path.c_str(), "w");
    if (file == nullptr || fputs(text.c_str(), file) < 0 || fclose(file) != 0) found("cannot write a config file");
}

void start_server() {
    static const std::string mapped = folder + "/mapped", pipes = folder + "/pipes";
    write_file(mapped, folder + "/pair-0.mapped ring=64KiB block=4KiB\n");
    write_file(pipes, folder + "/pair-0.request " + folder + "/pair-0.notify\n");
    fuzzed.channel = CHANNEL_NONE;
    fuzzed.libraries.folder = SUPPLY_FUZZ_ROUTINES;
    supply_options_init(&fuzzed.options);
    fuzzed.options.mapped_files = mapped.c_str();
    fuzzed.options.named_pipes = pipes.c_str();
    fuzzed.options.local_rank = 0;
    fuzzed.options.timeout = 0.005; // No task of Spark comes.
    ranks_init(&fuzzed.ranks);
    int opened;
    double timeout = 0;
    char *path = socket_path(&fuzzed.options, &opened, &timeout, fuzzed.text);
    if (path == nullptr || !channel_open(&fuzzed.channel, opened, path, fuzzed.text, sizeof fuzzed.text) ||
        !agreement_open(&fuzzed.agreement, &fuzzed.ranks, timeout, fuzzed.text))
        found(fuzzed.text);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    free(path);
}

std::string results_folder() { return folder + "/results"; }

/** As if the server had just started: an input must fail in the same way when it is repeated. */
void reset_server() {
    std::filesystem::remove_all(results_folder());
    reception_drop(&fuzzed.reception);
    matrices_drop_all(&fuzzed.matrices);
    growing_drop_spare();
    json_decref(fuzzed.last_answer);
    fuzzed.last_answer = nullptr;
    fuzzed.last_id[0] = fuzzed.text[0] = '\0';
    fuzzed.program = {};
    fuzzed.agreement.refused = {};
    fuzzed.ended = false;
}

/** The answer: lines of JSON objects, and after the last one the bytes that it announces. */
void check_answer(const std::string &answer, bool is_required) {
    size_t from = 0;
    while (from < answer.size()) {
        const size_t end = answer.find('\n', from);
        if (end == std::string::npos) found("an answer that does not end");
        json_t *line = json_loadb(&answer[from], end - from, 0, nullptr);
        if (!json_is_object(line)) found("an answer that is no JSON object");
        const json_t *done = json_object_get(line, "done");
        const bool is_last = done != nullptr || json_object_get(line, "error") != nullptr;
        const size_t bytes = static_cast<size_t>(json_integer_value(json_object_get(done, "bytes")));
        json_decref(line);
        from = end + 1;
        if (!is_last) continue;
        if (answer.size() - from != bytes) found("an answer of another length than it announces");
        return;
    }
    if (is_required) found("a command without an answer");
}

std::string ask(const char *data, size_t size) {
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string answer;
    char part[4096];
    ssize_t got;
    if (connect(connection, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
        found("the server accepts no connection");
    send(connection, data, size, MSG_NOSIGNAL);
    shutdown(connection, SHUT_WR);
    while ((got = recv(connection, part, sizeof part, 0)) > 0) answer.append(part, static_cast<size_t>(got));
    close(connection);
    return answer;
}

/** No input can know the ids, whose answers would be those that the server remembers. */
void end_server() {
    static uint64_t inputs = 0;
    const std::string id = std::to_string(inputs++);
    for (const std::string &command :
         {"\"attach\",\"take_over\":true,\"id\":\"attach " + id + "\"", "\"end\",\"id\":\"end " + id + "\""}) {
        const std::string line = "{\"program\":\"fuzzer\",\"command\":" + command + "}\n";
        check_answer(ask(line.data(), line.size()), true);
    }
    if (!fuzzed.ended) found("a server that does not end");
}

void send_lines(const char *text, size_t size) {
    while (size > 0 && !fuzzed.ended) {
        const char *end = static_cast<const char *>(memchr(text, '\n', size));
        const size_t line = end == nullptr ? size : static_cast<size_t>(end - text) + 1;
        // A line that does not end is no command, and gets no answer.
        check_answer(ask(text, line), end != nullptr);
        text += line;
        size -= line;
    }
    if (!fuzzed.ended) end_server();
}

/** Commands name folders. They must not reach one outside this fuzzer's, so they have no '/' of their own. */
bool names_a_path(const std::string &text) {
    return text.find('/') != std::string::npos || text.find("\\u002") != std::string::npos;
}

std::string with_folder(std::string text) {
    static const std::string sign = "\"@\"", named = '"' + results_folder() + '"';
    for (size_t at = 0; (at = text.find(sign, at)) != std::string::npos; at += named.size())
        text.replace(at, sign.size(), named);
    return text;
}

void remove_folder() { std::filesystem::remove_all(folder); }

} // namespace

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
    // A rank without a launcher, and without a daemon of Open MPI.
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    {
        __lsan::ScopedDisabler what_mpi_never_frees;
        MPI_Init(argc, argv);
    }
    // Open MPI takes this signal, and libFuzzer then would not write the input that has failed.
    signal(SIGABRT, SIG_DFL);
    make_folder();
    atexit(remove_folder);
    start_server();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::string text(reinterpret_cast<const char *>(data), size);
    if (names_a_path(text)) return -1;
    text = with_folder(text);
    reset_server();
    std::thread program(send_lines, text.data(), text.size());
    server_serve(&fuzzed);
    program.join();
    return 0;
}
