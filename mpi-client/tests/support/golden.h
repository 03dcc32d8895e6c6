/** Golden files (proto/golden/README.md), and a rank of the generation that they speak of. */
#ifndef SUPPLY_TEST_GOLDEN_H
#define SUPPLY_TEST_GOLDEN_H

#include <string>

#include "rank.h"

extern "C" {
#include "options.h"
}

namespace supply_test {

/** The golden file of that name; throws where it is missing. */
std::string read_golden(const std::string &name);

/** What the rank of the golden files opens its pair with; those of blocks that stay have more slots. */
struct settings golden_settings(const PairFiles &files, uint32_t block_count = 2);

/** A rank of the golden files, whose pair has seen what the task's golden files say that the task did. */
Handle replay(const PairFiles &files, const std::string &task_mapped, const std::string &task_notifications);

} // namespace supply_test

#endif
