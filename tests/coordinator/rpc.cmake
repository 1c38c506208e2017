# Tests of the coordinator's own edge. gRPC's library is not instrumented, so ThreadSanitizer would report what it
# cannot see.
if(TERSE_SANITIZER STREQUAL "thread")
  return()
endif()
terse_test(terse_coordinator_rpc_test
  SRCS "${CMAKE_CURRENT_LIST_DIR}/client_selection_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/dashboard_access_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/model_policy_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/outbox_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/round_traces_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/run_registry_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/write_budget_test.cc"
  DEPS terse_coordinator_rpc terse_postgres_server terse_testing)

# A program of its own, which is its sandbox too.
terse_test(terse_sandboxed_learning_test
  SRCS "${CMAKE_CURRENT_LIST_DIR}/sandboxed_learning_test.cc"
  DEPS terse_coordinator_rpc terse_testing)
