# supply.pc names folders of the installation that are configured as absolute paths.
function(check expected)
  file(REMOVE_RECURSE "${FOLDER}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}" -B "${FOLDER}" "-DCMAKE_C_COMPILER=${COMPILER}"
                          -DSUPPLY_BUILD_TOOLS=OFF -DSUPPLY_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX=/opt/prefix ${ARGN}
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${FOLDER}" "${PKG_CONFIG}" --cflags --libs supply
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE " +" " " flags "${flags}")
  if(NOT flags STREQUAL expected)
    message(FATAL_ERROR "with ${ARGN} pkg-config prints '${flags}', not '${expected}'")
  endif()
endfunction()

check("-I/opt/prefix/include -L/opt/libraries -lsupply" -DCMAKE_INSTALL_LIBDIR=/opt/libraries)
check("-I/opt/headers -L/opt/libraries -lsupply" -DCMAKE_INSTALL_LIBDIR=/opt/libraries -DCMAKE_INSTALL_INCLUDEDIR=/opt/headers)
file(REMOVE_RECURSE "${FOLDER}")
