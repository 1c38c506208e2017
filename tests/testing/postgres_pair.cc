#include "tests/testing/postgres_pair.h"

#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/postgres_server.h"

namespace terse {

PostgresPair::PostgresPair(Replication replication) : replication_(replication) {
  chmod(directory_.path().c_str(), 0711);  // the servers are another user's where this one is root's
  // What is lost with a server here is all of it, and never the part that it had not written. The log is kept for as
  // long as a standby needs to come.
  RunPostgresScript(absl::StrCat("start ", Folder(primary_), " fsync=off wal_keep_size=256MB"));
  AddStandby();
}

PostgresPair::~PostgresPair() {
  RunPostgresScript(absl::StrCat("stop ", Folder(primary_), " immediate"));
  if (has_standby_) RunPostgresScript(absl::StrCat("stop ", Folder(1 - primary_), " immediate"));
}

std::string PostgresPair::address() const {
  const auto escaped = [this](int server) { return absl::StrReplaceAll(Folder(server), {{"/", "%2F"}}); };
  return absl::StrCat("postgresql://terse@", escaped(0), ",", escaped(1), "/postgres?target_session_attrs=read-write");
}

void PostgresPair::CutOffStandby() {
  RunPostgresScript(absl::StrCat("set ", Folder(1 - primary_), " \"primary_conninfo=''\""));
}

void PostgresPair::LosePrimary() {
  RunPostgresScript(absl::StrCat("stop ", Folder(primary_), " immediate"));
  primary_ = 1 - primary_;
  has_standby_ = false;
  RunPostgresScript(absl::StrCat("promote ", Folder(primary_)));
}

void PostgresPair::AddStandby() {
  std::filesystem::remove_all(Folder(1 - primary_));
  RunPostgresScript(absl::StrCat("standby ", Folder(1 - primary_), " ", Folder(primary_)));
  has_standby_ = true;
  if (replication_ == Replication::kAsynchronous) return;
  RunPostgresScript(absl::StrCat("set ", Folder(primary_), " synchronous_standby_names=standby synchronous_commit=on"));
}

}  // namespace terse
