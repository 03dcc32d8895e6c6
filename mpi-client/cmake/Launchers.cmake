# The launchers of launch/, with the jars and Spark's settings beside them.
set(root "${PROJECT_SOURCE_DIR}/..")
set(launchers_data "${CMAKE_INSTALL_DATADIR}/supply")
# Its launcher of the same name starts it.
install(TARGETS supply-doctor DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/supply" COMPONENT tools)
install(FILES "${root}/mpi-client/python/src/spark_supplier/__init__.py" DESTINATION "${launchers_data}/spark_supplier" COMPONENT tools)
install(DIRECTORY "${root}/mpi-client/python/src/spark_supplier/launch" DESTINATION "${launchers_data}/spark_supplier"
        COMPONENT tools FILES_MATCHING PATTERN "*.py")
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
