/** Golden files (proto/golden/README.md), and a rank with their generation. */
#pragma once

#include <string>

#include "rank.h"

extern "C" {
#include "files/options.h"
}

namespace supply_test {

std::string golden_path(const std::string &name);

/** Reads it; throws if it is missing. */
std::string read_golden(const std::string &name);

/** Expects that a rank wrote the golden file to the byte. If SUPPLY_WRITE_GOLDEN is set, the file is written first. */
void expect_golden(const char *name, const std::string &written);

/** The settings of the rank of the golden files. With resident blocks the ring has more slots. */
struct settings golden_settings(const PairFiles &files, uint32_t block_count = 2);

/** The foreign file of the task's golden files of that name, as "task-in-place.foreign"; "": there is none. */
std::string foreign_of(const std::string &run);

/** Writes these contents to a file of that name, and its path and identity into the entry in `mapped`. */
void place_foreign_file(const TemporaryFolder &folder, const std::string &name, const std::string &contents,
                        std::string &mapped);

/** A rank of the golden files, after the task's side did what the task's golden files contain. */
Handle replay(const PairFiles &files, const std::string &task_mapped, const std::string &task_notifications);

} // namespace supply_test
