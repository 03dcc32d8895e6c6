# The installed package, for find_package(Supply) and pkg-config supply. Its components are the packages of Packages.cmake:
# runtime, dev, mpi (everything that is linked with an MPI) and tools.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Supply")
install(TARGETS supply EXPORT SupplyTargets LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
install(TARGETS supply_static EXPORT SupplyTargets ARCHIVE COMPONENT dev)
install(EXPORT SupplyTargets NAMESPACE Supply:: DESTINATION "${package_dir}" COMPONENT dev)
install(FILES include/supply.h include/supply_options.h include/supply_datum.h include/supply_arrow.h include/supply_result.h include/supply_mpi.h
        TYPE INCLUDE COMPONENT dev)

if(TARGET supply_exchange)
  install(TARGETS supply_exchange EXPORT SupplyMpiTargets LIBRARY COMPONENT mpi)
  install(EXPORT SupplyMpiTargets NAMESPACE Supply:: DESTINATION "${package_dir}" COMPONENT mpi)
  install(FILES include/supply_exchange.h include/supply_exchange_options.h TYPE INCLUDE COMPONENT mpi)
endif()
if(TARGET supply-server)
  install(TARGETS supply-server COMPONENT mpi)
  install(FILES include/supply_routine.h TYPE INCLUDE COMPONENT mpi)
endif()
if(TARGET supply_linalg)
  install(TARGETS supply_linalg LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/supply" COMPONENT mpi)
endif()
if(SUPPLY_BUILD_TOOLS)
  install(TARGETS supply-cat supply-clean supply-stat COMPONENT tools)
  include(cmake/Launchers.cmake)
endif()

write_basic_package_version_file("${PROJECT_BINARY_DIR}/SupplyConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/SupplyConfig.cmake.in "${PROJECT_BINARY_DIR}/SupplyConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/SupplyConfig.cmake" "${PROJECT_BINARY_DIR}/SupplyConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT dev)

# The prefix is relative to the .pc file, so that an installed tree can be moved, unless the library folder is absolute.
set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  set(pc_prefix "\${pcfiledir}/${pc_to_prefix}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
# pc_file(LIBRARY COMPONENT REQUIRES): programs with MPI are compiled by mpicc, which knows MPI's own flags.
function(pc_file pc_name component pc_requires)
  configure_file(cmake/library.pc.in "${PROJECT_BINARY_DIR}/${pc_name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${pc_name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT ${component})
endfunction()
pc_file(supply dev "")
if(TARGET supply_exchange)
  pc_file(supply_exchange mpi "supply = ${PROJECT_VERSION}")
endif()
