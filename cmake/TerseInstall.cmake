# What `cmake --install` leaves behind: the CMake package `Terse`, component `compression` (cmake/TerseConfig.cmake.in).
# The same from every build, whether the rest of Terse was built or not. Nothing of this build's flags reaches the user:
# all arithmetic that both ends must agree on is in the libraries, not in their headers, so -ffp-contract=off has done
# its work here.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

function(terse_install_package)
  set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/Terse")
  set_target_properties(terse_core PROPERTIES EXPORT_NAME core)
  set_target_properties(terse_compression PROPERTIES EXPORT_NAME compression)
  install(TARGETS terse_core terse_compression EXPORT TerseCompression ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT TerseCompression NAMESPACE terse:: FILE TerseCompressionTargets.cmake DESTINATION "${folder}")
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/core" "${CMAKE_SOURCE_DIR}/compression"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/terse" FILES_MATCHING PATTERN "*.h")
  install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" "${CMAKE_SOURCE_DIR}/compression/README.md"
    "${CMAKE_SOURCE_DIR}/compression/FORMAT.md" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/terse")
  configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/TerseConfig.cmake.in" "${CMAKE_BINARY_DIR}/TerseConfig.cmake"
    INSTALL_DESTINATION "${folder}")
  # Formats and interfaces may change with the minor version until 1.0.
  write_basic_package_version_file("${CMAKE_BINARY_DIR}/TerseConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_BINARY_DIR}/TerseConfig.cmake" "${CMAKE_BINARY_DIR}/TerseConfigVersion.cmake"
    DESTINATION "${folder}")
endfunction()
