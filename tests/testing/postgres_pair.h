// A PostgreSQL server with a standby that takes its place (tests/testing/postgres_server.sh).
#ifndef TERSE_TESTS_TESTING_POSTGRES_PAIR_H_
#define TERSE_TESTS_TESTING_POSTGRES_PAIR_H_

#include <string>

#include "tests/testing/temp_directory.h"

namespace terse {

// Both run from construction to destruction, each in a folder of its own. As PostgresServer, it ends the test program
// when it cannot do what it should.
class PostgresPair {
 public:
  // kSynchronous: a commit is over when the standby has it too. kAsynchronous: the standby has it some time later.
  enum class Replication { kSynchronous, kAsynchronous };

  explicit PostgresPair(Replication replication);
  ~PostgresPair();
  PostgresPair(const PostgresPair&) = delete;
  PostgresPair& operator=(const PostgresPair&) = delete;

  // What a coordinator's --store takes: a URI with both hosts, of which the one that accepts writes is meant.
  std::string address() const;
  // Of the one that is the primary now.
  std::string primary_address() const { return "host=" + Folder(primary_) + " user=terse dbname=postgres"; }

  // The standby gets nothing more, from now on.
  void CutOffStandby();
  // Ends all processes of the primary at once, and promotes the standby. The data of the lost one are never used again.
  void LosePrimary();
  // Copies a new standby from the primary, in the folder of the lost one. Where replication is synchronous, commits
  // wait for it from then on.
  void AddStandby();

 private:
  std::string Folder(int server) const { return directory_.Path(server == 0 ? "one" : "two"); }

  const Replication replication_;
  TempDirectory directory_;
  int primary_ = 0;
  bool has_standby_ = false;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_POSTGRES_PAIR_H_
