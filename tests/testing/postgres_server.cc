#include "tests/testing/postgres_server.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/testing/paths.h"

namespace terse {

void RunPostgresScript(const std::string& arguments) {
  const std::string command = absl::StrCat("bash ", InSource("tests/testing/postgres_server.sh"), " ", arguments);
  if (std::system(command.c_str()) == 0) return;
  std::fprintf(stderr, "failed: %s\n", command.c_str());
  std::abort();
}

PostgresServer::PostgresServer() {
  chmod(directory_.path().c_str(), 0711);  // the server is another user's where this one is root's
  Start();
}

PostgresServer::~PostgresServer() {
  if (runs_) Stop("immediate");
}

PostgresServer& PostgresServer::Shared() {
  static PostgresServer server;
  return server;
}

std::string PostgresServer::NewSchema() { return "Terse-" + std::to_string(++schemas_); }

// The tests are about order and not about the disk.
void PostgresServer::Start() {
  RunPostgresScript("start " + folder() + " fsync=off");
  runs_ = true;
}

void PostgresServer::Crash() { Stop("immediate"); }

void PostgresServer::Stop(const std::string& how) {
  RunPostgresScript("stop " + folder() + " " + how);
  runs_ = false;
}

}  // namespace terse
