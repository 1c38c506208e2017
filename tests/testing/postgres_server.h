// A real PostgreSQL server of a test's own (tests/testing/postgres_server.sh).
#ifndef TERSE_TESTS_TESTING_POSTGRES_SERVER_H_
#define TERSE_TESTS_TESTING_POSTGRES_SERVER_H_

#include <string>

#include "tests/testing/temp_directory.h"

namespace terse {

// Runs the script, and ends the test program where it fails.
void RunPostgresScript(const std::string& arguments);

// Runs from construction to destruction. A server that cannot be started ends the test program: nothing was tested.
class PostgresServer {
 public:
  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // One for all tests of this program, which stops at its end.
  static PostgresServer& Shared();

  // What PostgresDb::Open takes.
  std::string address() const { return "host=" + folder() + " user=terse dbname=postgres"; }
  // The name of a schema that nobody had yet.
  std::string NewSchema();
  void Start();
  // As after kill -9 of all of its processes.
  void Crash();

 private:
  std::string folder() const { return directory_.Path("server"); }
  void Stop(const std::string& how);

  TempDirectory directory_;
  int schemas_ = 0;
  bool runs_ = false;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_POSTGRES_SERVER_H_
