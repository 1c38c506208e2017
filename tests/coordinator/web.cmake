# The dashboard's server and API, with the library's own client on loopback ports. Neither gRPC's nor the HTTP library
# is instrumented, so ThreadSanitizer would report what it cannot see; the cache it does see.
terse_test(terse_reply_cache_test
  SRCS "${CMAKE_CURRENT_LIST_DIR}/reply_cache_test.cc"
  DEPS terse_coordinator_web)
terse_tsan_sees_absl(terse_reply_cache_test)
if(TERSE_SANITIZER STREQUAL "thread")
  return()
endif()
terse_test(terse_web_test
  SRCS "${CMAKE_CURRENT_LIST_DIR}/command_api_test.cc" "${CMAKE_CURRENT_LIST_DIR}/http_command_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/http_server_test.cc" "${CMAKE_CURRENT_LIST_DIR}/metered_store_test.cc"
       "${CMAKE_CURRENT_LIST_DIR}/web_api_test.cc"
  DEPS terse_coordinator_web terse_testing
  LINK PkgConfig::httplib nlohmann_json::nlohmann_json)
