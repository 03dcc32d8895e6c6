/** What a check of supply-doctor says. */
#ifndef SUPPLY_TEST_DIAGNOSIS_OF_H
#define SUPPLY_TEST_DIAGNOSIS_OF_H

#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" {
#include "diagnosis.h"
}

namespace supply_test {

/** check: gets a struct diagnosis *. */
template <typename Check>
std::string diagnosis_of(const Check &check) {
    char *text = nullptr;
    size_t bytes = 0;
    struct diagnosis diagnosis = {};
    diagnosis.stream = open_memstream(&text, &bytes);
    check(&diagnosis);
    fclose(diagnosis.stream);
    const std::string said(text);
    free(text);
    return said;
}

} // namespace supply_test

#endif
