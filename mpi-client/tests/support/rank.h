/** The rank's side in tests: a handle that closes itself, and a fixture with the files of a pair. */
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "supply_datum.h"
#include "task.h"
#include "temporary_folder.h"

namespace supply_test {

struct Close {
    void operator()(supply_t *supply) const { supply_close(supply); }
};
using Handle = std::unique_ptr<supply_t, Close>;

/** Compares a status, and prints the library's error if it is another one. */
::testing::AssertionResult has_status(const char *expected_text, const char *, const char *, supply_status_t expected,
                                      supply_status_t actual, const supply_t *supply);

#define EXPECT_STATUS(expected, call, handle)                                                                          \
    EXPECT_PRED_FORMAT3(::supply_test::has_status, expected, call, (handle).get())
#define ASSERT_STATUS(expected, call, handle)                                                                          \
    ASSERT_PRED_FORMAT3(::supply_test::has_status, expected, call, (handle).get())

/** True if the text holds the words, in any order. */
::testing::AssertionResult says(const std::string &text, std::initializer_list<const char *> words);

/** Options of a pair with these files: a small ring, and a time limit that a loaded machine does not reach. */
supply_options_t options_of(const PairFiles &files);

/** Removes what a dead rank left of the pair of these options, as supply-clean does. error: the text of a failure. */
supply_status_t remove_stale(const supply_options_t &options, std::string &error);

class RankTest : public ::testing::Test {
  protected:
    RankTest();

    /** Opens with `options`. Returns a handle even if opening fails. */
    Handle open(supply_status_t expected = SUPPLY_OK);

    struct Attached {
        Handle handle;
        Task task;
    };
    /** An open pair, to which a task has attached. */
    Attached attached() { return {open(), Task(files)}; }

    /** The next block, which must come; its release; and the end of an epoch, which must come. */
    static supply_block_t next(const Handle &handle);
    static void release(const Handle &handle, const supply_block_t &block);
    /** A column, or a Datum, of a held block. */
    static supply_column_t column_of(const Handle &handle, const supply_block_t &block, int index);
    static supply_datum_t datum_of(const Handle &handle, const supply_block_t &block, uint32_t index);
    static void expect_end_of_epoch(const Handle &handle, uint32_t epoch);

    /** Expects that the next call names what the task did against the contract, with these words, and the later ones.
     */
    void expect_violation(const Handle &handle, std::initializer_list<const char *> words);

    /** Supplies a schema and a block of Datums, numbered from `first`. */
    static void supply_datums(Task &task, uint64_t first, uint32_t count, uint32_t epoch = 0);

    TemporaryFolder folder;
    PairFiles files;
    supply_options_t options;
};

} // namespace supply_test
