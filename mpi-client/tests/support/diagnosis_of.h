/** What a check of supply-doctor says. */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" {
#include "diagnose_machine.h"
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
