# A man page for each installed program. help2man makes it of the program's --help, which is complete only where the program is
# installed: launchers find their parts and their own names there.
find_program(HELP2MAN help2man)
if(NOT HELP2MAN)
  message(STATUS "skipped: the man pages need help2man, which is not installed")
  return()
endif()

# What no --help has. The Supplier's options need Spark to be printed, so they come from the document.
set(see_also "${PROJECT_BINARY_DIR}/man/see-also.h2m")
file(WRITE "${see_also}" "[SEE ALSO]\nThe documents that this page names are in ${PROJECT_HOMEPAGE_URL}\n")
set(supplier_options "${PROJECT_BINARY_DIR}/man/supplier-options.h2m")
set(options_document "${PROJECT_SOURCE_DIR}/../docs/OPTIONS.md")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${options_document}")
file(READ "${options_document}" options)
string(REGEX REPLACE "^.*\n```\n(.*\n)```\n$" "\\1" options "${options}")
string(REPLACE "-" "\\-" options "${options}")
file(WRITE "${supplier_options}" "[SUPPLIER OPTIONS]\n.nf\n${options}.fi\n")

# Further arguments are options of help2man.
function(man_page component program description)
  install(CODE "
    set(page \"${CMAKE_INSTALL_MANDIR}/man1/${program}.1\")
    set(program \"${CMAKE_INSTALL_BINDIR}/${program}\")
    cmake_path(ABSOLUTE_PATH page BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
    cmake_path(ABSOLUTE_PATH program BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
    set(output \"\$ENV{DESTDIR}\${page}\")
    message(STATUS \"Installing: \${output}\")
    cmake_path(GET output PARENT_PATH folder)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND_ERROR_IS_FATAL ANY
      COMMAND \"${CMAKE_COMMAND}\" -E env PYTHONDONTWRITEBYTECODE=1 SPARK_HOME=none
        \"${HELP2MAN}\" --no-info \"--name=${description}\" \"--version-string=${program} ${PROJECT_VERSION}\"
        \"--source=spark-supplier ${PROJECT_VERSION}\" \"--include=${see_also}\" ${ARGN}
        \"--output=\${output}\" \"\$ENV{DESTDIR}\${program}\")
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${page}\")
  " COMPONENT ${component})
endfunction()

man_page(tools submit-supplier "submits the Supplier, the Spark side of a run, to YARN")
man_page(tools supplier "starts the Supplier, the Spark side of a run" "\"--include=${supplier_options}\"")
man_page(tools supply-cat "prints the elements that a rank receives from Spark")
man_page(tools supply-clean "removes what killed ranks left")
man_page(tools supply-doctor "checks a node before a run")
man_page(tools supply-make-configs "writes the config files of both sides of a run")
man_page(tools supply-run "starts both sides of a run on this machine, and stops both")
man_page(tools supply-run-ranks "starts the MPI ranks of a run")
man_page(tools supply-slurm-run "starts both sides of a run in a job of Slurm")
man_page(tools supply-stat "shows what the pairs of a node are doing")
if(TARGET supply-server)
  man_page(mpi supply-server "runs routines on matrices of a Spark program, on MPI ranks")
endif()
