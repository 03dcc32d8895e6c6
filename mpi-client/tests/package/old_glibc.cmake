# The tools need no function that was added after glibc 2.28, which RHEL 8 has. Versions that only bind old functions
# anew (2.29, 2.33, 2.34) are not counted, and neither is pthread_sigmask, which 2.32 only moved.
foreach(program IN LISTS PROGRAMS)
  execute_process(COMMAND "${NM}" --dynamic --undefined-only "${program}"
                  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^ \n]+@GLIBC_2\\.(3[012567]|39|4[0-9])" newer "${symbols}")
  list(FILTER newer EXCLUDE REGEX "^pthread_sigmask@")
  if(newer)
    message(FATAL_ERROR "${program} needs functions that glibc 2.28 does not have: ${newer}")
  endif()
endforeach()
