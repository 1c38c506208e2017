# Tests of tersectl, against a fake coordinator on a loopback port, and of the coordinator's own edge. gRPC's library is
# not instrumented, so ThreadSanitizer would report what it cannot see.
if(TERSE_SANITIZER STREQUAL "thread")
  return()
endif()
terse_test(terse_admin_test UNITY
  SRCS "${CMAKE_CURRENT_LIST_DIR}/admin_backup_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_cli_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/admin_create_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_doctor_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/admin_events_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_pki_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_plain_text_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/admin_report_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_run_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/admin_screen_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_shell_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/admin_tensorboard_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_watch_test.cc"
  DEPS terse_admin)
target_compile_definitions(terse_admin_test PRIVATE TERSE_RUNS_DIR="${CMAKE_SOURCE_DIR}/deploy/runs"
  TERSE_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/../golden" TERSE_TERSECTL="$<TARGET_FILE:tersectl>")
add_dependencies(terse_admin_test tersectl)

# With the helpers of the tests of storage/, which share a name with those above.
terse_test(terse_doctor_test SRCS "${CMAKE_CURRENT_LIST_DIR}/admin_doctor_state_test.cc" DEPS terse_admin
           LINK SQLite::SQLite3)
target_compile_definitions(terse_doctor_test PRIVATE
  TERSE_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/../golden" TERSE_TERSECTL="$<TARGET_FILE:tersectl>")
add_dependencies(terse_doctor_test tersectl)

terse_test(terse_coordinator_rpc_test
  SRCS "${CMAKE_CURRENT_LIST_DIR}/model_policy_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/outbox_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/run_registry_test.cc"
  DEPS terse_coordinator_rpc terse_testing)

# A program of its own, which is its sandbox too.
terse_test(terse_sandboxed_learning_test
  SRCS "${CMAKE_CURRENT_LIST_DIR}/sandboxed_learning_test.cc"
  DEPS terse_coordinator_rpc terse_testing)
