# Installs the package, moves it, and builds and runs an outside project against it: by find_package(), shared and
# static, and by pkg-config.
file(REMOVE_RECURSE "${FOLDER}")
set(prefix "${FOLDER}/moved")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --config "${CONFIG}" --prefix "${FOLDER}/installed"
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME "${FOLDER}/installed" "${prefix}")

function(run program)
  execute_process(COMMAND ${ARGN} "${program}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "^libsupply ${VERSION} speaks contract 1\\.[0-9]+\nSUPPLY_ERROR_CONFIG: .*SUPPLY_MAPPED_FILES")
    message(FATAL_ERROR "${program} printed:\n${output}")
  endif()
endfunction()

execute_process(COMMAND "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${OUTSIDE}" -B "${FOLDER}/build"
                        "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_C_COMPILER=${COMPILER}" "-DSUPPLY_VERSION=${VERSION}"
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${FOLDER}/build" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
run("${FOLDER}/build/outside")
run("${FOLDER}/build/outside-static")

if(EXISTS "${prefix}/include/supply_exchange.h")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                          "${FOLDER}/build/outside-exchange"
                  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "^SUPPLY_ERROR_CONFIG\nSUPPLY_ERROR_ARGUMENT\n")
    message(FATAL_ERROR "outside-exchange printed:\n${output}")
  endif()
endif()

if(NOT PKG_CONFIG)
  message(FATAL_ERROR "pkg-config is missing (on Debian: apt-get install pkg-config)")
endif()
file(GLOB_RECURSE pc "${prefix}/*/supply.pc")
get_filename_component(pc_folder "${pc}" DIRECTORY)
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${pc_folder}"
                        "${PKG_CONFIG}" --cflags --libs "supply = ${VERSION}"
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND "${COMPILER}" "${OUTSIDE}/outside.c" -o "${FOLDER}/outside-by-pkg-config" ${flags}
                COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(lib_folder "${pc_folder}" DIRECTORY)
run("${FOLDER}/outside-by-pkg-config" "${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${lib_folder}")

# Programs with MPI.
if(EXISTS "${prefix}/include/supply_exchange.h")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${pc_folder}"
                          "${PKG_CONFIG}" --cflags --libs "supply_exchange = ${VERSION}"
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT flags MATCHES "/include .*-lsupply_exchange -lsupply$")
    message(FATAL_ERROR "pkg-config prints for supply_exchange: ${flags}")
  endif()
endif()

foreach(tool IN ITEMS supply-cat supply-clean supply-stat supply-doctor)
  execute_process(COMMAND "${prefix}/bin/${tool}" --version OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "^${tool} ${VERSION} ")
    message(FATAL_ERROR "the installed ${tool} printed: ${output}")
  endif()
endforeach()
file(REMOVE_RECURSE "${FOLDER}")
