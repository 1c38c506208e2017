# terse_library(NAME LAYER layer HDRS ... SRCS ... [ALONE ...] [DEPS ...] [LINK ...] [INTERNAL ...])
#
# Declares a static library `NAME` in a layer of the house. DEPS are other Terse libraries and may only point downwards;
# an arrow that points up or sideways stops the configuration. LINK are third-party targets; INTERNAL are those whose
# headers only the sources include and that leave nothing to link, so that whoever uses an installed library need not
# have them. ALONE are those of SRCS that are never compiled together with others, such as those with compiler options of
# their own.
#
#   mains > simulation > rpc > engine > {compression, storage, learning} > core
#   security > {proto, net} > core and web > security, for rpc and above only
#
# Compression, storage, security and learning never see each other; neither do the client and the coordinator.

set(TERSE_ALLOWED_core "core")
# Command lines: for those layers that have an entry of a program.
set(TERSE_ALLOWED_cli "core;cli")
set(TERSE_ALLOWED_compression "core;compression")
set(TERSE_ALLOWED_storage "core;storage")
set(TERSE_ALLOWED_net "core;net")
set(TERSE_ALLOWED_security "core;net;proto;security")
set(TERSE_ALLOWED_web "core;net;security;web")
set(TERSE_ALLOWED_learning "core;learning")
set(TERSE_ALLOWED_proto "core;proto")
set(TERSE_ALLOWED_coordinator_engine "core;compression;storage;coordinator_engine")
set(TERSE_ALLOWED_client_engine "core;compression;storage;client_engine")
# Training in another process, whatever it is written in.
set(TERSE_ALLOWED_trainer "core;trainer")
# Work on core types in a confined process of this program, for the client and the coordinator.
set(TERSE_ALLOWED_sandbox "core;trainer;sandbox")
set(TERSE_ALLOWED_coordinator_rpc "core;cli;compression;storage;net;security;proto;coordinator_engine;trainer;sandbox;web;coordinator_rpc")
# Where the coordinator's seams and LibTorch meet.
set(TERSE_ALLOWED_coordinator_learning "core;compression;storage;security;proto;learning;coordinator_engine;coordinator_rpc;coordinator_learning")
set(TERSE_ALLOWED_client_rpc "core;cli;compression;storage;net;security;proto;client_engine;trainer;sandbox;web;client_rpc")
# The restore of a backup works on files, without a coordinator.
set(TERSE_ALLOWED_admin "core;cli;compression;proto;storage;security;admin")
# Whole fleets on one machine: it sees both ends, and nobody below sees it.
set(TERSE_ALLOWED_simulation "core;cli;compression;storage;net;security;proto;trainer;client_engine;client_rpc;coordinator_engine;coordinator_rpc;admin;simulation")
# A client above and a coordinator below in one process.
set(TERSE_ALLOWED_relay "core;cli;compression;storage;net;security;proto;coordinator_engine;coordinator_rpc;client_engine;client_rpc;relay")
set(TERSE_ALLOWED_testing "core;compression;storage;security;learning;trainer;sandbox;proto;coordinator_engine;coordinator_rpc;client_engine;client_rpc;testing")

set(TERSE_GRPC_LAYERS admin coordinator_rpc client_rpc relay simulation)

# terse_join_sources(NAME BATCH VARIABLE ALONE...): puts, in the list that VARIABLE names, sources that include up to BATCH
# sources each in the place of those. Headers, what the build makes and the files of ALONE stay as they are. CMake's own
# unity sources name the folder of the clone, so that the compiler cache of one clone would serve no other one; these name
# the sources from the top of the tree.
function(terse_join_sources NAME BATCH VARIABLE)
  file(RELATIVE_PATH folder "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  set(rest "")
  set(joined "")
  set(text "")
  set(held 0)
  set(sources ${${VARIABLE}})
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "[.]cc$" OR IS_ABSOLUTE "${source}" OR source IN_LIST ARGN)
      list(APPEND rest "${source}")
      continue()
    endif()
    set(path "${folder}/${source}")
    cmake_path(NORMAL_PATH path)
    string(APPEND text "#include \"${path}\"\n")
    math(EXPR held "${held} + 1")
    if(held EQUAL BATCH)
      terse_write_joined(${NAME} "${text}" joined)
      set(text "")
      set(held 0)
    endif()
  endforeach()
  if(held GREATER 0)
    terse_write_joined(${NAME} "${text}" joined)
  endif()
  set(${VARIABLE} ${rest} ${joined} PARENT_SCOPE)
endfunction()

# Writes the next joined source of NAME, unless it holds this already, and adds it to the list that VARIABLE names.
function(terse_write_joined NAME TEXT VARIABLE)
  list(LENGTH ${VARIABLE} number)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/joined/${NAME}_${number}.cc")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${TEXT}" @ONLY)
  set(${VARIABLE} ${${VARIABLE}} "${file}" PARENT_SCOPE)
endfunction()

function(terse_library NAME)
  cmake_parse_arguments(ARG "" "LAYER" "HDRS;SRCS;ALONE;DEPS;LINK;INTERNAL" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "terse_library(${NAME}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT DEFINED TERSE_ALLOWED_${ARG_LAYER})
    message(FATAL_ERROR "terse_library(${NAME}): unknown layer '${ARG_LAYER}'")
  endif()
  foreach(dep IN LISTS ARG_DEPS)
    if(NOT TARGET ${dep})
      message(FATAL_ERROR "terse_library(${NAME}): '${dep}' is not declared yet; a dependency must come from a lower layer")
    endif()
    get_target_property(layer ${dep} TERSE_LAYER)
    if(NOT layer IN_LIST TERSE_ALLOWED_${ARG_LAYER})
      message(FATAL_ERROR "terse_library(${NAME}): layer '${ARG_LAYER}' may not depend on '${dep}' of layer '${layer}'. "
                          "Allowed: ${TERSE_ALLOWED_${ARG_LAYER}}")
    endif()
  endforeach()
  if(TERSE_UNITY AND NOT ARG_LAYER STREQUAL "testing")
    # More at a time where the headers of gRPC are most of the work.
    set(batch 12)
    if(ARG_LAYER IN_LIST TERSE_GRPC_LAYERS)
      set(batch 24)
    endif()
    terse_join_sources(${NAME} ${batch} ARG_SRCS ${ARG_ALONE})
  endif()
  add_library(${NAME} STATIC ${ARG_HDRS} ${ARG_SRCS})
  set_target_properties(${NAME} PROPERTIES TERSE_LAYER ${ARG_LAYER} LINKER_LANGUAGE CXX)
  # Warnings are this build's own affair: what is installed does not mention them.
  list(TRANSFORM ARG_INTERNAL REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")
  target_link_libraries(${NAME} PUBLIC ${ARG_DEPS} ${ARG_LINK} PRIVATE ${ARG_INTERNAL} $<BUILD_INTERFACE:terse_flags>)
  target_compile_features(${NAME} PUBLIC cxx_std_17)
  target_include_directories(${NAME} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/terse>")
endfunction()

# terse_for_shared_objects(NAME): the library can be linked into a shared object, such as Python's extension, too. Calls
# inside a source are inlined as without it.
function(terse_for_shared_objects NAME)
  set_target_properties(${NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${NAME} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
endfunction()

# terse_executable(NAME SRCS ... DEPS ... LINK ...): a main; it may use every layer.
function(terse_executable NAME)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LINK" ${ARGN})
  add_executable(${NAME} ${ARG_SRCS})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} ${ARG_LINK} terse_flags)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

# terse_test(NAME SRCS ... DEPS ... [LINK ...] [LABELS ...] [UNITY]): a GoogleTest binary under ctest. UNITY: with
# TERSE_UNITY eight sources are compiled at a time, whose names tests/lint/unity_names.py compares.
function(terse_test NAME)
  cmake_parse_arguments(ARG "UNITY" "" "SRCS;DEPS;LINK;LABELS" ${ARGN})
  if(TERSE_UNITY AND ARG_UNITY)
    terse_join_sources(${NAME} 8 ARG_SRCS)
  endif()
  add_executable(${NAME} ${ARG_SRCS})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} ${ARG_LINK} terse_test_paths GTest::gmock GTest::gtest GTest::gtest_main
                        terse_flags)
  add_test(NAME ${NAME} COMMAND ${NAME})
  set(seconds 600)
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    set(seconds 6000)  # qemu takes many times as long
  endif()
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${seconds} LABELS "${ARG_LABELS}")
endfunction()
