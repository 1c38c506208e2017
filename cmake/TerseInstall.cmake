# `cmake --install` installs the CMake package `Terse` (cmake/TerseConfig.cmake.in) with the component `compression`,
# the same from every build, and unless only that is built, `client` and `coordinator`, for those who bring their own
# model. None needs LibTorch. Nothing of this build's flags reaches the user: all arithmetic that both ends must agree
# on is in the libraries, not in their headers, so -ffp-contract=off has done its work here.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(TERSE_PACKAGE_FOLDER "${CMAKE_INSTALL_LIBDIR}/cmake/Terse")

# terse_install_targets(SET TARGET ...): static libraries as terse::NAME, for the target terse_NAME unless it has
# another EXPORT_NAME, in the file TerseSETTargets.cmake.
function(terse_install_targets SET)
  foreach(target IN LISTS ARGN)
    get_target_property(name ${target} EXPORT_NAME)
    if(NOT name)
      string(REGEX REPLACE "^terse_" "" name ${target})
      set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    endif()
  endforeach()
  install(TARGETS ${ARGN} EXPORT Terse${SET} ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    COMPONENT dev)
  install(EXPORT Terse${SET} NAMESPACE terse:: FILE Terse${SET}Targets.cmake DESTINATION "${TERSE_PACKAGE_FOLDER}"
    COMPONENT dev)
endfunction()

function(terse_install_package)
  terse_install_targets(Compression terse_core terse_compression)
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/core" "${CMAKE_SOURCE_DIR}/compression"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/terse" COMPONENT dev FILES_MATCHING PATTERN "*.h"
    PATTERN "core/cli" EXCLUDE PATTERN "core/log" EXCLUDE)
  install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" "${CMAKE_SOURCE_DIR}/compression/README.md"
    "${CMAKE_SOURCE_DIR}/compression/FORMAT.md" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/terse" COMPONENT dev)
  configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/TerseConfig.cmake.in" "${CMAKE_BINARY_DIR}/TerseConfig.cmake"
    INSTALL_DESTINATION "${TERSE_PACKAGE_FOLDER}")
  # Formats and interfaces may change with the minor version until 1.0.
  write_basic_package_version_file("${CMAKE_BINARY_DIR}/TerseConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_BINARY_DIR}/TerseConfig.cmake" "${CMAKE_BINARY_DIR}/TerseConfigVersion.cmake"
    DESTINATION "${TERSE_PACKAGE_FOLDER}" COMPONENT dev)
endfunction()

# The components that need more than Abseil and Highway. Only the headers that a plug-in includes are installed with
# them.
function(terse_install_plugin_components)
  set_target_properties(terse_client_rpc PROPERTIES EXPORT_NAME client)
  set_target_properties(terse_coordinator_rpc PROPERTIES EXPORT_NAME coordinator)
  terse_install_targets(Plugin
    terse_cli terse_log terse_log_options terse_net terse_storage terse_postgres_store terse_security terse_transport terse_enrolment terse_https terse_web terse_proto_gen terse_run_config_loader terse_session_wire
    terse_proto_text terse_client_engine terse_trainer terse_sandbox terse_client_rpc terse_coordinator_engine terse_coordinator_web
    terse_coordinator_rpc)
  foreach(header client/plugin.h client/rpc/connection_loop.h client/rpc/daemon.h coordinator/plugin.h coordinator/rpc/client_budgets.h coordinator/rpc/run_learning.h
                 coordinator/rpc/server.h core/log/log.h proto/keepalive.h security/identity.h security/transport_options.h)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES "${CMAKE_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/terse/${folder}"
      COMPONENT dev)
  endforeach()
endfunction()

# The programs that this build has, each a component; with a LibTorch of its own place they go on finding it there.
function(terse_install_programs)
  foreach(component coordinator client client-torch relay simulate tersectl)
    set(program terse-${component})
    if(component STREQUAL tersectl)
      set(program tersectl)
    endif()
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
      install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT ${component})
    endif()
  endforeach()
endfunction()

# With the client, for those who write a trainer.
function(terse_install_trainer_check)
  install(TARGETS terse-trainer-check RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT client)
endfunction()

# terse_install_page(PROGRAM SECTION COMPONENT): the manual page that the program prints, where this build has it.
function(terse_install_page PROGRAM SECTION COMPONENT)
  if(NOT TARGET ${PROGRAM})
    return()
  endif()
  set(page "${CMAKE_BINARY_DIR}/man/${PROGRAM}.${SECTION}")
  add_custom_command(OUTPUT "${page}"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${CMAKE_BINARY_DIR}/man"
    COMMAND ${PROGRAM} --man > "${page}"
    DEPENDS ${PROGRAM} VERBATIM)
  add_custom_target(${PROGRAM}_manual ALL DEPENDS "${page}")
  install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${SECTION}" COMPONENT ${COMPONENT})
endfunction()

# The manual pages of all programs and the completion of tersectl, which they print themselves.
function(terse_install_manual)
  terse_install_page(terse-coordinator 8 coordinator)
  terse_install_page(terse-client 8 client)
  terse_install_page(terse-trainer-check 1 client)
  terse_install_page(terse-relay 8 relay)
  terse_install_page(terse-simulate 1 simulate)
  set(made "${CMAKE_BINARY_DIR}/tersectl")
  install(FILES "${made}/tersectl.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tersectl)
  install(FILES "${made}/tersectl.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
    RENAME tersectl COMPONENT tersectl)
  # Where zsh looks for what the machine's administrator installs, and for what a Debian package does.
  install(FILES "${made}/_tersectl" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT zsh)
  install(FILES "${made}/_tersectl" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions"
    COMPONENT tersectl EXCLUDE_FROM_ALL)
endfunction()
