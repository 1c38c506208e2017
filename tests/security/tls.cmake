# gRPC's library is not instrumented, so ThreadSanitizer would report what it cannot see.
if(TERSE_SANITIZER STREQUAL "thread")
  return()
endif()
terse_test(terse_tls_test
  SRCS access_test.cc audit_test.cc client_budgets_test.cc dashboard_tls_test.cc enrolment_test.cc gatekeeper_test.cc secure_fleet.cc secure_fleet.h tls_test.cc
  DEPS terse_coordinator_rpc terse_client_rpc terse_admin terse_testing
  LINK PkgConfig::httplib nlohmann_json::nlohmann_json)
target_compile_definitions(terse_tls_test PRIVATE TERSE_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/../golden")
