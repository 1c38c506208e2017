# Debian packages of what is installed: cpack -G DEB in the build folder, or deploy/package.sh, which builds first.
#
#   terse-coordinator   the service, its unit and run files    terse-client     the service and its unit
#   terse-client-torch  its trainer of Terse's own models      terse-relay      the service and its unit
#   terse-simulate      a large fleet on one machine
#   tersectl            with manual and completions            terse-authority  `tersectl pki serve` as a service
#   terse-follow        `tersectl follow` as a service
#   libterse-dev        headers, static libraries, CMake package

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME terse)
set(CPACK_PACKAGE_VENDOR "Terse")
set(CPACK_PACKAGE_CONTACT "Terse's builder <root@localhost>" CACHE STRING "Maintainer in the Debian packages")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL)

# terse_package(COMPONENT PACKAGE SECTION DESCRIPTION [DEPENDS PACKAGE...]): beside the libraries that its programs load.
macro(terse_package COMPONENT PACKAGE SECTION DESCRIPTION)
  cmake_parse_arguments(_package "" "" DEPENDS ${ARGN})
  string(TOUPPER ${COMPONENT} _component)
  list(APPEND CPACK_COMPONENTS_ALL ${COMPONENT})
  set(CPACK_DEBIAN_${_component}_PACKAGE_NAME ${PACKAGE})
  set(CPACK_DEBIAN_${_component}_PACKAGE_SECTION ${SECTION})
  set(CPACK_DEBIAN_${_component}_DESCRIPTION "${DESCRIPTION}")
  list(JOIN _package_DEPENDS ", " CPACK_DEBIAN_${_component}_PACKAGE_DEPENDS)
  install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${PACKAGE}" RENAME copyright
    COMPONENT ${COMPONENT} EXCLUDE_FROM_ALL)
endmacro()

# terse_service(COMPONENT PACKAGE USER SECRETS STATE): the unit PACKAGE.service, its options and what dpkg runs around it,
# which makes the USER, and SECRETS, the folder for the keys that root brings or makes, as that user's alone.
macro(terse_service COMPONENT PACKAGE USER SECRETS STATE)
  install(FILES "${CMAKE_SOURCE_DIR}/deploy/systemd/${PACKAGE}.service" DESTINATION lib/systemd/system
    COMPONENT ${COMPONENT})
  install(FILES "${CMAKE_SOURCE_DIR}/deploy/systemd/${COMPONENT}.env" DESTINATION "${CMAKE_INSTALL_DATADIR}/terse"
    COMPONENT ${COMPONENT})
  string(TOUPPER ${COMPONENT} _component)
  set(CPACK_DEBIAN_${_component}_PACKAGE_CONTROL_EXTRA)
  foreach(_script postinst prerm postrm)
    set(_made "${CMAKE_BINARY_DIR}/package_scripts/${COMPONENT}/${_script}")
    terse_package_script(${_script} "${_made}" ${COMPONENT} ${PACKAGE} ${USER} ${SECRETS} ${STATE})
    list(APPEND CPACK_DEBIAN_${_component}_PACKAGE_CONTROL_EXTRA "${_made}")
  endforeach()
endmacro()

function(terse_package_script NAME MADE COMPONENT PACKAGE USER SECRETS STATE)
  configure_file("${CMAKE_SOURCE_DIR}/cmake/packages/${NAME}.in" "${MADE}" @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()

# libopenblas0-openmp: any BLAS satisfies LibTorch's package, and the reference one is slow.
if(TARGET terse-coordinator)
  terse_package(coordinator terse-coordinator net "Coordinator of federated training
 Runs rounds over a fleet of clients that train on their own data and send
 sparse, entropy-coded updates. Keeps runs in /var/lib/terse."
    DEPENDS adduser libopenblas0-openmp)
  set(CPACK_DEBIAN_COORDINATOR_PACKAGE_RECOMMENDS tersectl)
  terse_service(coordinator terse-coordinator terse /etc/terse/tls /var/lib/terse)
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/deploy/runs" "${CMAKE_SOURCE_DIR}/deploy/monitoring"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/terse" COMPONENT coordinator)
endif()
if(TARGET terse-client)
  terse_package(client terse-client net "Client of federated training
 Sends what a trainer on this machine has learned from its data to a Terse
 coordinator, as sparse, entropy-coded updates; what it has not sent stays in
 its residual. The trainer is a program of the user's own, or the package
 terse-client-torch."
    DEPENDS adduser)
  set(CPACK_DEBIAN_CLIENT_PACKAGE_RECOMMENDS terse-client-torch)
  terse_service(client terse-client terse /etc/terse/tls /var/lib/terse-client)
endif()
if(TARGET terse-client-torch)
  terse_package(client-torch terse-client-torch net "Trains Terse's own models with LibTorch
 The part of terse-client that trains models of Terse's own and TorchScript
 modules."
    DEPENDS terse-client libopenblas0-openmp)
endif()
# A package of its own: a gateway trains nothing and makes no models, so it wants neither LibTorch nor a client's service.
if(TARGET terse-relay)
  terse_package(relay terse-relay net "Relay between a coordinator of federated training and its clients
 Collects the updates of the clients of a site, and sends their mean to a Terse
 coordinator as one update of its own. Keeps its state in /var/lib/terse-relay."
    DEPENDS adduser)
  set(CPACK_DEBIAN_RELAY_PACKAGE_RECOMMENDS tersectl)
  terse_service(relay terse-relay terse /etc/terse/tls /var/lib/terse-relay)
endif()
# A package of its own: who simulates wants neither the user nor the service of the coordinator, which it brings itself.
if(TARGET terse-simulate)
  terse_package(simulate terse-simulate net "Simulates a fleet of federated training on this machine
 A coordinator and thousands of clients in a few processes, for experiments
 with Terse's own models or with trainers of the user's own. It serves the
 package `terse` for Python as well, whose wheels lack it."
    DEPENDS libopenblas0-openmp)
  set(CPACK_DEBIAN_SIMULATE_PACKAGE_RECOMMENDS "tersectl, terse-relay")
endif()
if(TARGET tersectl)
  terse_package(tersectl tersectl net "Looks at a Terse coordinator and steers its runs
 Command line for runs, clients, bytes, exports, backups and certificates of
 federated training with Terse.")
  # A package of its own: who only steers runs wants neither the user nor the service.
  terse_package(authority terse-authority net "Enrols clients of federated training by invitation
 The authority of a Terse fleet as a service: `tersectl pki serve`, which gives
 certificates to devices that have an invitation."
    DEPENDS adduser tersectl)
  terse_service(authority terse-authority terse-authority /var/lib/terse-authority /var/lib/terse-authority)
  terse_package(follow terse-follow net "Hands the runs of federated training to other tools
 `tersectl follow` as a service: the figures of a Terse coordinator's runs for
 MLflow and TensorBoard, traces of their rounds for OpenTelemetry, and webhooks
 when something happens to them."
    DEPENDS adduser tersectl)
  terse_service(follow terse-follow terse-follow /var/lib/terse-follow/tls /var/lib/terse-follow)
endif()
terse_package(dev libterse-dev libdevel "Libraries of Terse, for own models in C++
 Static libraries, headers and a CMake package: compression alone, or a
 coordinator and a client around a model of your own."
  DEPENDS libabsl-dev libhwy-dev libgrpc++-dev libprotobuf-dev libsqlite3-dev libpq-dev libssl-dev zlib1g-dev libspdlog-dev
  prometheus-cpp-dev nlohmann-json3-dev libsystemd-dev libseccomp-dev)

include(CPack)
