// Helpers that the tests of PostgreSQL share.
#ifndef TERSE_TESTS_STORAGE_POSTGRES_TESTING_H_
#define TERSE_TESTS_STORAGE_POSTGRES_TESTING_H_

#include <string>

#include "storage/postgres_db.h"
#include "tests/storage/storage_testing.h"
#include "tests/testing/postgres_server.h"

namespace terse {

// Ends every connection to the server that all tests share, as its administrator or a broken cable does. Returns when
// they have ended.
inline void KillConnections() {
  const auto db = PostgresDb::Open(PostgresServer::Shared().address(), "public", PostgresDb::Mode::kWriter).value();
  Statement killed = db->Prepare(
      "WITH others AS MATERIALIZED (SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> "
      "pg_backend_pid()) SELECT COUNT(*) FROM others WHERE pg_terminate_backend(pid, 10000)");
  EXPECT_TRUE(killed.Step().value());
  EXPECT_GT(killed.GetInt(0), 0);
}

}  // namespace terse

#endif  // TERSE_TESTS_STORAGE_POSTGRES_TESTING_H_
