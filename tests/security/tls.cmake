# gRPC's library is not instrumented, so ThreadSanitizer would report what it cannot see.
if(TERSE_SANITIZER STREQUAL "thread")
  return()
endif()
terse_library(terse_secure_fleet LAYER testing
  HDRS secure_fleet.h
  SRCS secure_fleet.cc
  DEPS terse_coordinator_rpc terse_testing
  LINK GTest::gtest)

terse_test(terse_tls_test UNITY
  SRCS access_test.cc audit_test.cc client_budgets_test.cc dashboard_tls_test.cc enrolment_test.cc gatekeeper_test.cc
       relay_test.cc tls_test.cc
  DEPS terse_secure_fleet terse_client_rpc terse_admin
  LINK PkgConfig::httplib nlohmann_json::nlohmann_json)

terse_test(terse_connection_failure_test SRCS connection_failure_test.cc DEPS terse_transport)
