/** Command lines of programs with MPI, all on this node. */
#pragma once

#include <string>
#include <vector>

namespace supply_test {

/** A single rank, without a launcher. */
inline std::vector<std::string> alone(const std::string &program) {
    /* Open MPI leaks memory. The tests without MPI find the leaks of libsupply. */
    return {"env",
            "ASAN_OPTIONS=detect_leaks=0",
            "OMPI_ALLOW_RUN_AS_ROOT=1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "OMPI_MCA_rmaps_base_oversubscribe=1",
            "OMPI_MCA_mpi_yield_when_idle=1",
            "OMPI_MCA_btl=self,vader",
            program};
}

#ifdef SUPPLY_TEST_MPIRUN
/** Several ranks. */
inline std::vector<std::string> mpirun(int ranks, const std::vector<std::string> &program) {
    std::vector<std::string> command = alone(SUPPLY_TEST_MPIRUN);
    command.insert(command.end(), {"-n", std::to_string(ranks)});
    command.insert(command.end(), program.begin(), program.end());
    return command;
}
#endif

} // namespace supply_test
