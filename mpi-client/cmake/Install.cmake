# The installed package, for find_package(Supply) and pkg-config supply.
install(TARGETS supply supply_static EXPORT SupplyTargets)
if(SUPPLY_BUILD_TOOLS)
  install(TARGETS supply-cat supply-clean supply-stat supply-doctor)
endif()
if(TARGET supply-server)
  install(TARGETS supply-server)
  install(FILES include/supply_routine.h TYPE INCLUDE)
endif()
if(TARGET supply_linalg)
  install(TARGETS supply_linalg LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/supply")
endif()
install(FILES include/supply.h include/supply_options.h include/supply_arrow.h include/supply_result.h include/supply_mpi.h
        TYPE INCLUDE)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Supply")
install(EXPORT SupplyTargets NAMESPACE Supply:: DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/SupplyConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/SupplyConfig.cmake.in "${PROJECT_BINARY_DIR}/SupplyConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/SupplyConfig.cmake" "${PROJECT_BINARY_DIR}/SupplyConfigVersion.cmake"
        DESTINATION "${package_dir}")

# The prefix is relative to the .pc file, so that an installed tree can be moved, unless the library folder is absolute.
set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  set(pc_prefix "\${pcfiledir}/${pc_to_prefix}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/supply.pc.in "${PROJECT_BINARY_DIR}/supply.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/supply.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
