# Tests of tersectl, against a fake coordinator on a loopback port.
terse_test(terse_admin_test
  SRCS "${CMAKE_CURRENT_LIST_DIR}/admin_cli_test.cc" "${CMAKE_CURRENT_LIST_DIR}/admin_report_test.cc"
  DEPS terse_admin)
target_compile_definitions(terse_admin_test PRIVATE TERSE_RUNS_DIR="${CMAKE_SOURCE_DIR}/deploy/runs")
