# What `cmake --install` gives: headers, libfleetx.so and a CMake package. (Tools install themselves.)
include(CMakePackageConfigHelpers)

install(TARGETS fleetx EXPORT fleetxTargets)
if(SKBUILD)  # a wheel is for Python: no headers
  return()
endif()
# Headers in ops/ are shared by op files only, those of *_library/ by the files of one library; they see oneDNN and MPI,
# which users need not have.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/fleetx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "ops" EXCLUDE PATTERN "*_library" EXCLUDE)
install(DIRECTORY ${PROJECT_BINARY_DIR}/made/include/fleetx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fleetx)
install(EXPORT fleetxTargets NAMESPACE fleetx:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fleetxConfig.cmake.in fleetxConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fleetxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fleetxConfig.cmake ${PROJECT_BINARY_DIR}/fleetxConfigVersion.cmake
        DESTINATION ${package_dir})
