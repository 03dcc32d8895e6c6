# The launchers of launch/, with the jars and Spark's settings beside them, and the tools' man pages.
set(root "${PROJECT_SOURCE_DIR}/..")
set(launchers_data "${CMAKE_INSTALL_DATADIR}/supply")
# Its launcher of the same name starts it.
install(TARGETS supply-doctor DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/supply" COMPONENT tools)
install(DIRECTORY "${root}/launch/supply_launch" DESTINATION "${launchers_data}" COMPONENT tools FILES_MATCHING PATTERN "*.py")
install(DIRECTORY "${root}/configs/spark" DESTINATION "${launchers_data}/configs" COMPONENT tools)
# `make build` makes them.
install(FILES "${root}/spark-supplier/target/spark-supplier.jar" DESTINATION "${launchers_data}/jars/spark-4.1"
        COMPONENT tools OPTIONAL)
install(FILES "${root}/build/spark-3.5/target/spark-supplier.jar" DESTINATION "${launchers_data}/jars/spark-3.5"
        COMPONENT tools OPTIONAL)

# As places.py names them.
set(launcher_names supplier=supplier submit_supplier=submit-supplier supply_doctor=supply-doctor supply_run=supply-run
  make_configs=supply-make-configs run_ranks=supply-run-ranks slurm_run=supply-slurm-run)
foreach(pair IN LISTS launcher_names)
  string(REGEX MATCH "^(.*)=(.*)$" matched "${pair}")
  set(module "${CMAKE_MATCH_1}")
  configure_file(cmake/launcher.in "${PROJECT_BINARY_DIR}/launchers/${CMAKE_MATCH_2}" @ONLY)
  install(PROGRAMS "${PROJECT_BINARY_DIR}/launchers/${CMAKE_MATCH_2}" TYPE BIN COMPONENT tools)
endforeach()

find_program(HELP2MAN help2man)
if(HELP2MAN)
  set(descriptions
    "supply-cat=prints the elements that a rank receives from Spark"
    "supply-clean=removes what killed ranks left"
    "supply-doctor=checks a node before a run"
    "supply-stat=shows what the pairs of a node are doing")
  foreach(pair IN LISTS descriptions)
    string(REGEX MATCH "^(.*)=(.*)$" matched "${pair}")
    set(tool "${CMAKE_MATCH_1}")
    set(page "${PROJECT_BINARY_DIR}/man/${tool}.1")
    add_custom_command(OUTPUT "${page}" VERBATIM
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/man"
      COMMAND "${HELP2MAN}" --no-info "--name=${CMAKE_MATCH_2}" "--source=spark-supplier ${PROJECT_VERSION}"
              "--output=${page}" "$<TARGET_FILE:${tool}>"
      DEPENDS ${tool})
    list(APPEND pages "${page}")
    install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools)
  endforeach()
  add_custom_target(man ALL DEPENDS ${pages})
else()
  message(STATUS "skipped: the man pages need help2man, which is not installed")
endif()
