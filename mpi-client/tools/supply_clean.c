/** supply-clean: removes the files that dead ranks left, and results and resident files that nobody needs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/claimed_file.h"
#include "clean_resident_files.h"
#include "command_line.h"
#include "files/config_files.h"
#include "base/file_lock.h"
#include "files/folder.h"
#include "layout.h"
#include "files/result_names.h"
#include "supply.h"

/* A process id of another PID namespace, such as another container's, says nothing here. */
static bool can_judge(const struct mapped_file_header *header) {
    struct stat own;
    return stat("/proc/self/ns/pid", &own) == 0 && header->task_namespace == (uint32_t)own.st_ino;
}

/*
 * A sealed result is Spark's: of its readers, and of the executor that fed the rank. The lock keeps readers out until
 * the file is closed.
 */
static supply_status_t clean_check_unused(const struct claimed_file *file, const struct cleaning *cleaning,
                                          struct failure *failure) {
    struct mapped_file_header header;
    if (supply__file_lock(file->fd, F_WRLCK, READER_LOCK_BYTE) != 0)
        return supply__fail(failure, SUPPLY_ERROR_IN_USE,
                            "result %s (%s) is read by Spark: release it there (RunResult.release), or end Spark",
                            file->name->path, file->name->origin);
    const ssize_t got = pread(file->fd, &header, sizeof header, 0);
    const bool is_used = got == sizeof header && header.sealed == SEALED_COMPLETE && header.task_pid != 0;
    if (!is_used || cleaning->unread_results) return SUPPLY_OK;
    if (!can_judge(&header))
        return supply__fail(failure, SUPPLY_ERROR_IN_USE,
                            "result %s (%s) belongs to process %u of Spark in another container, or PID namespace, and "
                            "may live: run supply-clean there, release it in Spark (RunResult.release), or say that "
                            "nobody will read it (--unread-results)",
                            file->name->path, file->name->origin, header.task_pid);
    if ((kill((pid_t)header.task_pid, 0) == 0 || errno == EPERM))
        return supply__fail(failure, SUPPLY_ERROR_IN_USE,
                            "result %s (%s) belongs to process %u of Spark, which is alive: release it there "
                            "(RunResult.release), or end Spark",
                            file->name->path, file->name->origin, header.task_pid);
    return SUPPLY_OK;
}

static supply_status_t clean_result(const struct named_path *path, const struct cleaning *cleaning,
                                    struct failure *failure) {
    struct claimed_file file;
    if (cleaning->keep_results && supply__result_is_sealed(path)) return SUPPLY_OK;
    supply_status_t status = supply__claim_stale(&file, FILE_RESULT, path, failure);
    if (status != SUPPLY_OK) return status;
    const bool exists = file.fd >= 0;
    if (exists && supply__result_is_sealed(path)) status = clean_check_unused(&file, cleaning, failure);
    if (status == SUPPLY_OK && !cleaning->dry_run && !supply__claim_remove(&file))
        status = supply__fail(failure, SUPPLY_ERROR_SYSTEM, "result %s (%s) cannot be removed: %m: remove it by hand",
                              path->path, path->origin);
    supply__claim_close(&file);
    if (status == SUPPLY_OK && exists) puts(path->path);
    return status;
}

static bool clean_report(const struct cleaning *cleaning, supply_status_t status, const struct failure *failure) {
    if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", cleaning->tool, failure->text);
    return status == SUPPLY_OK;
}

/*
 * Removes the results of a dead pair that no process uses, and prints the path of each. False: one is left that is in
 * use or cannot be removed, and standard error says why.
 */
static bool clean_results(const struct config_line *line, const struct cleaning *cleaning) {
    struct named_path folder = {0};
    struct result_files files = {0};
    struct failure failure;
    supply_status_t status = supply__results_folder(cleaning->results_folder, &line->mapped_file, &folder, &failure);
    if (status == SUPPLY_OK)
        status = supply__result_files_find(&folder, supply__folder_name(&line->mapped_file), &files, &failure);
    bool cleaned = clean_report(cleaning, status, &failure);
    for (size_t i = 0; i < files.count; i++)
        cleaned &= clean_report(cleaning, clean_result(&files.paths[i], cleaning, &failure), &failure);
    supply__result_files_free(&files);
    free(folder.path);
    free(folder.origin);
    return cleaned;
}

enum { DRY_RUN = COMMAND_LINE_OWN, RESULTS_FOLDER, KEEP_RESULTS, UNREAD_RESULTS, RESIDENT_FOLDER };
static const struct option options[] = {
    COMMAND_LINE_COMMON,
    {"dry-run", no_argument, NULL, DRY_RUN},
    {"results-folder", required_argument, NULL, RESULTS_FOLDER},
    {"keep-results", no_argument, NULL, KEEP_RESULTS},
    {"unread-results", no_argument, NULL, UNREAD_RESULTS},
    {"resident-folder", required_argument, NULL, RESIDENT_FOLDER},
    COMMAND_LINE_END,
};

static const struct tool tool = {
    .name = "supply-clean",
    .options = options,
    .usage =
        "Usage: supply-clean [options]\n"
        "Removes the mapped files and named pipes of dead ranks, and prints the path of each file that it removed.\n"
        "It never touches a pair whose rank is alive. Of dead ranks it also removes results: those that are not\n"
        "sealed, and sealed ones that nobody reads and whose Spark process has ended, or that were written without a\n"
        "pair. It cannot tell that of a process of another container (PID namespace), and keeps those.\n"
        "\n"
        "Options:\n" COMMAND_LINE_FILES COMMAND_LINE_EVERY_LINE
        "  --results-folder DIR  folder of the results (default: SUPPLY_RESULTS_FOLDER, or that of the mapped file)\n"
        "  --keep-results        keep all sealed results\n"
        "  --unread-results      also remove sealed results that nobody reads now, whether their Spark process lives "
        "or "
        "not\n"
        "  --resident-folder DIR\n"
        "                        also remove the resident files of dead ranks in this folder, not only beside the\n"
        "                        mapped files, as the user of the files\n"
        "                        (the executors' user), unless a process reads them; never those of --keep\n"
        "                        (default: none)\n"
        "  --dry-run             print what would be removed, and remove nothing\n"
        "  --help, --version\n"
        "\n"
        "Exit status: 0 if nothing is left (with --dry-run: would be left), 1 if a rank is alive or something failed,\n"
        "2 on a wrong option.\n",
};

static bool clean_pair(const struct config_line *line, const struct cleaning *cleaning) {
    const char *const paths[] = {line->mapped_file.path, line->request_pipe.path, line->notification_pipe.path};
    struct stale_files stale;
    struct failure failure;
    const supply_status_t status =
        cleaning->dry_run ? supply__stale_find(line, &stale, &failure) : supply__stale_remove(line, &stale, &failure);
    if (status != SUPPLY_OK) fprintf(stderr, "%s: %s\n", tool.name, failure.text);
    for (int i = 0; i < 3; i++)
        if (stale.left[i]) puts(paths[i]);
    /* Resident files are judged by themselves: they may belong to another user of the pair's group than its folder. */
    const bool cleaned = status == SUPPLY_OK && clean_results(line, cleaning);
    return clean_resident_files(line, cleaning) && cleaned;
}

int main(int argc, char **argv) {
    struct pair_selection selection = NO_PAIR_SELECTION;
    struct cleaning cleaning = {.tool = tool.name};
    for (int option; (option = command_line_next(&tool, argc, argv, &selection)) >= 0;) {
        if (option == RESULTS_FOLDER)
            cleaning.results_folder = optarg;
        else if (option == KEEP_RESULTS)
            cleaning.keep_results = true;
        else if (option == UNREAD_RESULTS)
            cleaning.unread_results = true;
        else if (option == RESIDENT_FOLDER)
            cleaning.resident_folder = optarg;
        else
            cleaning.dry_run = true;
    }
    struct config_lines lines;
    bool cleaned = command_line_read_config(&tool, &selection, &lines);
    if (cleaned)
        for (size_t i = 0; i < lines.count; i++)
            if (selection.local_rank < 0 || (size_t)selection.local_rank == i)
                cleaned &= clean_pair(&lines.lines[i], &cleaning);
    supply__config_free(&lines);
    return command_line_exit_status(&tool, cleaned ? 0 : 1);
}
