// What SqlDb promises on both engines; and of PostgresDb its texts, statuses, addresses, and connections that are lost.
#include "storage/postgres_db.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/storage/postgres_testing.h"
#include "tests/storage/store_place.h"
#include "tests/testing/postgres_pair.h"

namespace terse {
namespace {

constexpr char kInsertAll[] = "INSERT INTO t (i, r, s, b) VALUES (?, ?, ?, ?)";

int64_t CountRows(SqlDb& db) {
  Statement count = db.Prepare("SELECT COUNT(*) FROM t");
  EXPECT_TRUE(count.Step().value());
  return count.GetInt(0);
}

absl::Status InsertNumber(SqlDb& db, int64_t number) {
  return db.Prepare("INSERT INTO t (i) VALUES (?)").Int(number).Run();
}

absl::Status InsertInTransaction(SqlDb& db, int64_t number) {
  return db.InTransaction([&] { return InsertNumber(db, number); });
}

class SqlDbTest : public ::testing::TestWithParam<SqlEngine> {
 protected:
  void SetUp() override {
    db_ = place_.Connect();
    if (GetParam() == SqlEngine::kPostgres) {
      ASSERT_OK(db_->Script("CREATE SCHEMA " + PostgresDb::Quoted(place_.schema())));
    }
    static const auto& table =
        *new SqlText("CREATE TABLE t (i INTEGER PRIMARY KEY, r REAL, s TEXT UNIQUE, b BLOB) STRICT",
                     "CREATE TABLE t (i BIGINT PRIMARY KEY, r DOUBLE PRECISION, s TEXT UNIQUE, b BYTEA)");
    ASSERT_OK(db_->Script(table.For(GetParam())));
  }
  std::unique_ptr<SqlDb> ConnectReader() const {
    if (GetParam() == SqlEngine::kSqlite) {
      return SqliteDb::Open(place_.directory().Path("run.sqlite"), SqliteDb::Mode::kReader).value();
    }
    return PostgresDb::Open(PostgresServer::Shared().address(), place_.schema(), PostgresDb::Mode::kReader).value();
  }

  const StorePlace place_{GetParam()};
  std::unique_ptr<SqlDb> db_;
};

TERSE_ON_BOTH_ENGINES(SqlDbTest);

TEST_P(SqlDbTest, ValuesComeBack) {
  const std::string blob("\0\xff\0", 3);
  const Id128 id{1, 2};
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ASSERT_OK(db_->InTransaction([&] {
    EXPECT_OK(db_->Prepare(kInsertAll).Int(int64_t{1} << 62).Real(0.1).Text("\u00fc").Blob(blob).Run());
    EXPECT_OK(db_->Prepare(kInsertAll).Int(-5).Real(NAN).Text("").Id(id).Run());
    return db_->Prepare(kInsertAll).Int(kLowest).Real(-kInfinity).Null().Blob(absl::string_view()).Run();
  }));
  Statement rows = db_->Prepare("SELECT i, r, s, b FROM t ORDER BY i");
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.GetInt(0), kLowest);
  EXPECT_EQ(rows.GetReal(1), -kInfinity);
  EXPECT_TRUE(rows.IsNull(2));
  EXPECT_FALSE(rows.IsNull(3));
  EXPECT_EQ(rows.GetBlob(3), "");
  EXPECT_EQ(rows.GetId(3), Id128()) << "no 16 bytes";
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.GetInt(0), -5);
  EXPECT_TRUE(rows.IsNull(1));
  EXPECT_TRUE(std::isnan(rows.GetReal(1)));
  EXPECT_EQ(rows.GetInt(1), 0);
  EXPECT_FALSE(rows.IsNull(2));
  EXPECT_EQ(rows.GetText(2), "");
  EXPECT_EQ(rows.GetId(3), id);
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.GetInt(0), int64_t{1} << 62);
  EXPECT_EQ(rows.GetReal(0), std::ldexp(1, 62));
  EXPECT_EQ(rows.GetReal(1), 0.1);
  EXPECT_EQ(rows.GetText(2), "\u00fc");
  EXPECT_EQ(rows.GetBlob(3), blob);
  EXPECT_FALSE(rows.Step().value());
}

TEST_P(SqlDbTest, FailedTransactionsLeaveNothing) {
  EXPECT_CODE(db_->InTransaction([&] {
    EXPECT_OK(InsertNumber(*db_, 1));
    return absl::AbortedError("no");
  }),
              kAborted, "no");
  EXPECT_EQ(CountRows(*db_), 0);
  const auto insert = [&](int64_t i, absl::string_view s) {
    return db_->Prepare("INSERT INTO t (i, s) VALUES (?, ?)").Int(i).Text(s).Run();
  };
  EXPECT_CODE(db_->InTransaction([&] {
    EXPECT_OK(insert(1, "a"));
    return insert(2, "a");
  }),
              kFailedPrecondition, "t");
  EXPECT_EQ(CountRows(*db_), 0);
  EXPECT_OK(db_->InTransaction([&] { return insert(1, "a"); }));
  EXPECT_EQ(CountRows(*db_), 1);
}

TEST_P(SqlDbTest, ATransactionHasManyStatements) {
  constexpr int64_t kRows = 2000;
  const auto insert_all = [&](int64_t twice) {
    return db_->InTransaction([&] {
      absl::Status status;
      for (int64_t row = 0; status.ok() && row < kRows; ++row) {
        status = InsertNumber(*db_, row == twice ? row - 1 : row);
      }
      return status;
    });
  };
  EXPECT_CODE(insert_all(1), kFailedPrecondition, "t");
  EXPECT_CODE(insert_all(1500), kFailedPrecondition, "t");
  EXPECT_CODE(insert_all(kRows - 1), kFailedPrecondition, "t");
  EXPECT_EQ(CountRows(*db_), 0);
  EXPECT_OK(insert_all(-1));
  EXPECT_EQ(CountRows(*db_), kRows);
}

// A parameter's type belongs to a statement that PostgreSQL prepares.
TEST_P(SqlDbTest, AStatementTakesNullsAndValuesInTurn) {
  for (int64_t i = 1; i <= 6; ++i) {
    const std::string text = absl::StrCat("s", i);
    Statement insert = db_->Prepare(kInsertAll);
    insert.Int(i);
    if (i % 2 == 0) {
      insert.Null().Null().Null();
    } else {
      insert.Real(0.5).Text(text).Blob("b");
    }
    ASSERT_OK(insert.Run());
  }
  for (int64_t i = 1; i <= 6; ++i) {
    Statement row = db_->Prepare("SELECT r, s, b FROM t WHERE i = ?");
    ASSERT_TRUE(row.Int(i).Step().value());
    for (const int column : {0, 1, 2}) EXPECT_EQ(row.IsNull(column), i % 2 == 0) << i << " " << column;
  }
  // An integer becomes the column's real number, and the next one is a real number by itself.
  for (const bool is_whole : {true, false}) {
    Statement update = db_->Prepare("UPDATE t SET r = ? WHERE i = 1");
    ASSERT_OK(is_whole ? update.Int(3).RunForOne("no row") : update.Real(2.5).RunForOne("no row"));
    Statement row = db_->Prepare("SELECT r FROM t WHERE i = 1");
    ASSERT_TRUE(row.Step().value());
    EXPECT_EQ(row.GetReal(0), is_whole ? 3 : 2.5);
  }
  // A number that is repeated is the same parameter.
  Statement row = db_->Prepare("SELECT i FROM t WHERE i = ?1 AND i >= ?1 AND s = ?2");
  ASSERT_TRUE(row.Int(3).Text("s3").Step().value());
  EXPECT_EQ(row.GetInt(0), 3);
}

TEST_P(SqlDbTest, ChangesAreThoseOfTheLastStatement) {
  const auto update = [&](int64_t below) { return db_->Prepare("UPDATE t SET r = 1 WHERE i < ?").Int(below).Run(); };
  ASSERT_OK(db_->InTransaction([&] {
    for (int64_t i = 0; i < 5; ++i) EXPECT_OK(InsertNumber(*db_, i));
    EXPECT_EQ(*db_->Changes(), 1);
    EXPECT_OK(update(3));
    EXPECT_EQ(*db_->Changes(), 3);
    EXPECT_OK(update(0));
    EXPECT_EQ(*db_->Changes(), 0);
    EXPECT_CODE(db_->Prepare("DELETE FROM t WHERE i = ?").Int(9).RunForOne("nothing there"), kFailedPrecondition,
                "nothing there");
    return db_->Prepare("DELETE FROM t WHERE i = ?").Int(4).RunForOne("nothing there");
  }));
  EXPECT_EQ(CountRows(*db_), 4);
  ASSERT_OK(update(2));
  EXPECT_EQ(*db_->Changes(), 2) << "outside of a transaction";
}

TEST_P(SqlDbTest, ManyRowsAreInsertedAmongOtherStatements) {
  constexpr int64_t kRows = 700;  // more than PostgreSQL gets at once
  const std::string blob(1000, '\0');
  const auto text_of = [](int64_t row) { return absl::StrCat("row\t\\N ", row); };
  const auto insert = [&](int64_t first, int64_t rows) {
    std::vector<std::string> texts;
    for (int64_t row = 0; row < rows; ++row) texts.push_back(text_of(first + row));
    return db_->InsertRows("t", "i, r, s, b", rows, [&](int64_t row, Statement& values) {
      values.Int(first + row).Real(row % 2 == 0 ? NAN : 0.5).Text(texts[static_cast<size_t>(row)]);
      if (row % 3 == 0) {
        values.Null();
      } else {
        values.Blob(blob);
      }
    });
  };
  ASSERT_OK(db_->InTransaction([&] {
    EXPECT_OK(InsertNumber(*db_, -1));
    EXPECT_OK(insert(0, kRows));
    EXPECT_OK(insert(kRows, 0));
    EXPECT_EQ(CountRows(*db_), kRows + 1);
    return InsertNumber(*db_, -2);
  }));
  Statement row = db_->Prepare("SELECT r, s, b FROM t WHERE i = ?");
  ASSERT_TRUE(row.Int(kRows - 1).Step().value());
  EXPECT_EQ(row.GetReal(0), 0.5);
  EXPECT_EQ(row.GetText(1), text_of(kRows - 1));
  EXPECT_TRUE(row.IsNull(2));
  Statement even = db_->Prepare("SELECT r, b FROM t WHERE i = 2");
  ASSERT_TRUE(even.Step().value());
  EXPECT_TRUE(even.IsNull(0));
  EXPECT_EQ(even.GetBlob(1), blob);

  // One of them is there already, and an earlier statement's error is not passed over.
  EXPECT_CODE(db_->InTransaction([&] { return insert(kRows - 1, 2); }), kFailedPrecondition, "t");
  EXPECT_CODE(db_->InTransaction([&] {
    const absl::Status status = InsertNumber(*db_, 1);
    return status.ok() ? insert(kRows, 5) : status;
  }),
              kFailedPrecondition, "t");
  EXPECT_EQ(CountRows(*db_), kRows + 2);
  EXPECT_OK(db_->InTransaction([&] { return insert(kRows, 5); }));
  EXPECT_EQ(CountRows(*db_), kRows + 7);
}

TEST_P(SqlDbTest, AReaderSeesOneMomentAndWritesNothing) {
  const std::unique_ptr<SqlDb> reader = ConnectReader();
  ASSERT_OK(InsertInTransaction(*db_, 1));
  ASSERT_OK(reader->BeginReading());
  EXPECT_EQ(CountRows(*reader), 1);
  ASSERT_OK(InsertInTransaction(*db_, 2));
  EXPECT_EQ(CountRows(*reader), 1);
  ASSERT_OK(reader->EndReading());
  ASSERT_OK(reader->BeginReading());
  EXPECT_EQ(CountRows(*reader), 2);
  ASSERT_OK(reader->EndReading());
  EXPECT_FALSE(InsertNumber(*reader, 3).ok());
  EXPECT_FALSE(reader->Script("DELETE FROM t").ok());
  EXPECT_EQ(CountRows(*db_), 2);
}

TEST_P(SqlDbTest, AnErrorOutsideOfATransactionIsForgotten) {
  EXPECT_CODE(db_->Prepare("SELECT nonsense").Step().status(), kInternal, db_->place());
  EXPECT_CODE(db_->Script("SELECT nonsense"), kInternal, "nonsense");
  ASSERT_OK(InsertNumber(*db_, 1));
  EXPECT_CODE(InsertNumber(*db_, 1), kFailedPrecondition, db_->place());
  EXPECT_OK(InsertNumber(*db_, 2));
  EXPECT_EQ(CountRows(*db_), 2);
}

TEST_P(SqlDbTest, ABrokenConnectionRefusesTransactions) {
  ASSERT_OK(db_->Begin());
  ASSERT_OK(InsertNumber(*db_, 1));
  db_->Break(absl::UnknownError("a sync failed"));
  db_->Break(absl::UnknownError("another one"));
  EXPECT_FALSE(db_->End(absl::CancelledError("given up")).ok());
  EXPECT_CODE(InsertInTransaction(*db_, 2), kUnknown, "a sync failed");
  db_.reset();
  EXPECT_EQ(CountRows(*place_.Connect()), 0);
}

class PostgresDbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(db_->Script(absl::StrCat("CREATE SCHEMA ", PostgresDb::Quoted(schema_),
                                       "; CREATE TABLE t (i BIGINT PRIMARY KEY, r DOUBLE PRECISION, "
                                       "s TEXT UNIQUE, b BYTEA)")));
  }
  std::unique_ptr<PostgresDb> Connect(PostgresDb::Mode mode = PostgresDb::Mode::kWriter) const {
    return PostgresDb::Open(PostgresServer::Shared().address(), schema_, mode).value();
  }

  const std::string schema_ = PostgresServer::Shared().NewSchema();
  std::unique_ptr<PostgresDb> db_ = Connect();
};

TEST_F(PostgresDbTest, AStatementsErrorComesAtTheEndAtTheLatest) {
  ASSERT_OK(db_->Begin());
  EXPECT_OK(InsertNumber(*db_, 1));
  EXPECT_OK(InsertNumber(*db_, 1)) << "nobody waited for it";
  EXPECT_OK(InsertNumber(*db_, 2));
  EXPECT_CODE(db_->End(absl::OkStatus()), kFailedPrecondition, "duplicate key");
  EXPECT_EQ(CountRows(*db_), 0);

  ASSERT_OK(db_->Begin());
  EXPECT_OK(InsertNumber(*db_, 1));
  EXPECT_OK(InsertNumber(*db_, 1));
  EXPECT_CODE(db_->Changes().status(), kFailedPrecondition, "duplicate key");
  EXPECT_CODE(InsertNumber(*db_, 2), kFailedPrecondition, "duplicate key");
  EXPECT_CODE(db_->Prepare("SELECT 1").Step().status(), kFailedPrecondition, "duplicate key");
  EXPECT_CODE(db_->Script("SELECT 1"), kFailedPrecondition, "duplicate key");
  EXPECT_CODE(db_->End(absl::OkStatus()), kFailedPrecondition, "duplicate key");
  EXPECT_EQ(CountRows(*db_), 0);

  // A statement whose preparation was left out, or refused, behind an error is prepared again.
  ASSERT_OK(db_->Begin());
  EXPECT_OK(db_->Prepare("UPDATE nothing SET i = ?").Int(1).Run());
  EXPECT_OK(db_->Prepare("UPDATE t SET i = i + ?").Int(1).Run());
  EXPECT_CODE(db_->End(absl::OkStatus()), kInternal, "nothing");
  ASSERT_OK(InsertInTransaction(*db_, 1));
  ASSERT_OK(db_->Prepare("UPDATE t SET i = i + ?").Int(1).RunForOne("no row"));
  ASSERT_OK(db_->Script("CREATE TABLE nothing (i BIGINT)"));
  EXPECT_OK(db_->Prepare("UPDATE nothing SET i = ?").Int(1).Run());
}

// What a commit finds is the server's error too.
TEST_F(PostgresDbTest, ACommitThatIsRefusedLeavesNothing) {
  ASSERT_OK(db_->Script("CREATE TABLE late (i BIGINT REFERENCES t (i) DEFERRABLE INITIALLY DEFERRED)"));
  EXPECT_CODE(db_->InTransaction([&] {
    EXPECT_OK(InsertNumber(*db_, 1));
    return db_->Prepare("INSERT INTO late (i) VALUES (?)").Int(9).Run();
  }),
              kFailedPrecondition, "late");
  EXPECT_EQ(CountRows(*db_), 0);
  EXPECT_OK(InsertInTransaction(*db_, 1));
}

TEST_F(PostgresDbTest, ATextThatItCannotHaveIsStoredWithoutThoseBytes) {
  const std::string zero("a\0b", 3), invalid = "\xc3\xa9\xff", cut = "x\xe2\x82";
  int64_t i = 0;
  for (const std::string& text : {zero, invalid, cut}) {
    ASSERT_OK(db_->Prepare("INSERT INTO t (i, s) VALUES (?, ?)").Int(++i).Text(text).Run());
  }
  const auto number_of = [&](absl::string_view text) {
    Statement row = db_->Prepare("SELECT i, s FROM t WHERE s = ?");
    return row.Text(text).Step().value() ? absl::StrCat(row.GetInt(0), " ", row.GetText(1)) : "none";
  };
  EXPECT_EQ(number_of(zero),
            "1 a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(number_of(invalid), "2 \xc3\xa9\xef\xbf\xbd");
  EXPECT_EQ(number_of(cut), "3 x\xef\xbf\xbd");
  EXPECT_EQ(number_of("\xc3\xa9"), "none");
  ASSERT_OK(db_->InTransaction([&] {
    return db_->InsertRows("t", "i, s", 1, [&](int64_t, Statement& values) { values.Int(4).Text("rows\xff"); });
  }));
  EXPECT_EQ(number_of("rows\xff"), "4 rows\xef\xbf\xbd");
}

TEST_F(PostgresDbTest, AColumnThatNobodyReadsIsAnError) {
  Statement row = db_->Prepare("SELECT SUM(i) FROM t");
  EXPECT_CODE(row.Step().status(), kInternal, "column 0 has a type (1700) that nobody reads");
  EXPECT_EQ(CountRows(*db_), 0);
}

TEST_F(PostgresDbTest, AnErrorOfTheServerHasItsCodeAndItsRemedy) {
  const struct {
    const char* sqlstate;
    absl::StatusCode code;
    const char* part;
  } rows[] = {{"42501", absl::StatusCode::kPermissionDenied, "rights in the database"},
              {"28000", absl::StatusCode::kPermissionDenied, "password file"},
              {"25006", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"25P03", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"25000", absl::StatusCode::kInternal, "why"},
              {"55P03", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"55000", absl::StatusCode::kInternal, "why"},
              {"08006", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"40001", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"40P01", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"57014", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"58030", absl::StatusCode::kUnavailable, "check that the server runs"},
              {"53100", absl::StatusCode::kResourceExhausted, "give the server more room"},
              {"53200", absl::StatusCode::kResourceExhausted, "give the server more room"},
              {"54000", absl::StatusCode::kUnimplemented, "why"},
              {"23514", absl::StatusCode::kFailedPrecondition, "why"},
              {"XX001", absl::StatusCode::kDataLoss, "tersectl restore BACKUP"},
              {"XX002", absl::StatusCode::kDataLoss, "tersectl restore BACKUP"},
              {"XX000", absl::StatusCode::kInternal, "why"},
              {"22012", absl::StatusCode::kInternal, "why"}};
  for (const auto& row : rows) {
    const std::string raise =
        absl::StrCat("DO $$ BEGIN RAISE EXCEPTION 'this is why' USING ERRCODE = '", row.sqlstate, "'; END $$");
    for (const absl::Status& status :
         {db_->Script(raise), db_->InTransaction([&] { return db_->Prepare(raise).Run(); })}) {
      EXPECT_TRUE(HasCode(status, row.code, row.part)) << row.sqlstate;
      EXPECT_TRUE(HasCode(status, row.code, absl::StrCat(db_->place(), ": ERROR:  this is why"))) << row.sqlstate;
      EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
    }
  }
}

TEST_F(PostgresDbTest, ErrorsThatItsCallersMeetAreTheRightOnes) {
  EXPECT_CODE(db_->Prepare("SELECT 1 / CAST(? AS BIGINT)").Int(0).Step().status(), kInternal, "division by zero");
  EXPECT_CODE(InsertNumber(*Connect(PostgresDb::Mode::kReader), 1), kUnavailable, "read-only transaction");
  const std::unique_ptr<PostgresDb> guest = Connect();
  ASSERT_OK(guest->Script(
      absl::StrCat("GRANT USAGE ON SCHEMA ", PostgresDb::Quoted(schema_), " TO pg_monitor; SET ROLE pg_monitor")));
  EXPECT_CODE(InsertNumber(*guest, 1), kPermissionDenied, "permission denied for table t");
  // A transaction that waits for another one's row is given up, and then works.
  const std::unique_ptr<PostgresDb> other = Connect();
  ASSERT_OK(other->Script("SET lock_timeout TO 10"));
  ASSERT_OK(InsertNumber(*db_, 1));
  ASSERT_OK(db_->Begin());
  ASSERT_OK(db_->Prepare("UPDATE t SET r = ?").Real(1).RunForOne("no row"));
  const auto update = [&] {
    return other->InTransaction([&] { return other->Prepare("UPDATE t SET r = ?").Real(2).RunForOne("no row"); });
  };
  EXPECT_CODE(update(), kUnavailable, "lock timeout");
  ASSERT_OK(db_->End(absl::OkStatus()));
  EXPECT_OK(update());
}

absl::Status OpenAddress(const std::string& address) {
  return PostgresDb::Open(address, "s", PostgresDb::Mode::kWriter).status();
}

TEST(PostgresAddress, HasNoPassword) {
  for (const char* const address :
       {"host=/tmp password=hunter2", "postgresql://me:hunter2@localhost/db",
        "postgresql://localhost/db?password=hunter2", "host=/tmp sslkey=client.key sslpassword=hunter2",
        "host=192.0.2.1 password=hunter2", "postgresql://me:hunter2@localhost:x:y/db"}) {
    const absl::Status status = OpenAddress(address);
    EXPECT_CODE(status, kInvalidArgument, "~/.pgpass");
    EXPECT_FALSE(absl::StrContains(status.message(), "hunter2")) << status;
  }
  // Where libpq cannot read an address, its message repeats a part of it.
  for (const char* const address :
       {"host=/tmp password=my hunter2", "postgresql://me:hunter2@[::1/db",
        "postgres://me:hunter2@localhost/db?nonsense=1", "host=/tmp PASSWORD=hunter2", "password='hunter2"}) {
    const absl::Status status = OpenAddress(address);
    EXPECT_CODE(status, kInvalidArgument, "cannot be read");
    EXPECT_FALSE(absl::StrContains(status.message(), "hunter2")) << status;
  }
}

// libpq's own message has two lines, of which the second begins with a tab.
TEST(PostgresAddress, WithoutAServerIsOneLine) {
  const absl::Status status = OpenAddress("host=/nonexistent dbname=d user=u");
  EXPECT_CODE(status, kUnavailable, "No such file or directory; Is the server running locally");
  EXPECT_FALSE(absl::StrContains(status.message(), "\t")) << status;
}

TEST(PostgresAddress, IsOneThatLibpqReads) {
  EXPECT_CODE(OpenAddress("nonsense"), kInvalidArgument, "missing \"=\" after \"nonsense\"");
  EXPECT_CODE(OpenAddress("hots=/tmp"), kInvalidArgument, "invalid connection option \"hots\"");
  EXPECT_CODE(OpenAddress("postgresql://me@[::1/db"), kInvalidArgument, "it is like postgresql://USER@HOST/DATABASE");
  EXPECT_CODE(OpenAddress("postgresql://me@[::1/db"), kInvalidArgument, "[::1/db");
}

// The standby is the first that the address names. A reader of a standby would miss what was committed just now.
TEST(PostgresAddress, OfSeveralServersMeansTheOneThatAcceptsWrites) {
  PostgresPair pair(PostgresPair::Replication::kAsynchronous);
  pair.LosePrimary();
  pair.AddStandby();
  const std::string address(absl::StripSuffix(pair.address(), "?target_session_attrs=read-write"));
  ASSERT_LT(address.size(), pair.address().size());
  for (const PostgresDb::Mode mode : {PostgresDb::Mode::kWriter, PostgresDb::Mode::kReader, PostgresDb::Mode::kLease}) {
    const auto db = PostgresDb::Open(address, "public", mode);
    ASSERT_OK(db.status());
    Statement standby = (*db)->Prepare("SELECT pg_is_in_recovery()");
    EXPECT_TRUE(standby.Step().value());
    EXPECT_EQ(standby.GetInt(0), 0);
  }
}

// They fail before anything is sent: nobody answers at these addresses, so a connection would be UNAVAILABLE.
TEST(PostgresAddress, OfAnotherMachineIsCheckedBeforeConnecting) {
  for (const char* const address :
       {"host=192.0.2.1 sslmode=disable", "hostaddr=192.0.2.1 sslmode=prefer",
        "host=localhost hostaddr=192.0.2.1 sslmode=require", "host=/tmp,192.0.2.1 sslmode=verify-ca",
        "postgresql://localhost:1,192.0.2.1:2/db?sslmode=prefer&target_session_attrs=read-write",
        "postgresql://me@192.0.2.1/db?sslmode=allow", "host=127.0.0.1.example.invalid sslmode=disable",
        "host=128.0.0.1 sslmode=disable", "postgresql://[2001:db8::1]/db?sslmode=disable"}) {
    EXPECT_CODE(OpenAddress(address), kInvalidArgument, "sslmode=verify-full") << address;
    EXPECT_CODE(OpenAddress(address), kInvalidArgument, "sslrootcert=FILE") << address;
  }
  for (const char* const address :
       {"hostaddr=127.0.0.1 port=1 sslmode=disable", "hostaddr=::1 port=1 sslmode=disable",
        "host=localhost port=1 sslmode=disable", "host=127.1.2.3 port=1", "host=/nowhere,/tmp/nowhere sslmode=disable",
        "postgresql://127.0.0.1:1,[::1]:2/db?target_session_attrs=read-write"}) {
    EXPECT_CODE(OpenAddress(address), kUnavailable, "cannot be used") << address;
  }
}

// A server without TLS, which answers one client and keeps what it sent.
class PlainServer {
 public:
  PlainServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, any, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      const int client = accept(listener_, nullptr, nullptr);
      char bytes[256];
      for (ssize_t got; (got = recv(client, bytes, sizeof bytes, 0)) > 0;) {
        received_.append(bytes, static_cast<size_t>(got));
        if (send(client, "N", 1, MSG_NOSIGNAL) != 1) break;  // no TLS here
      }
      close(client);
    });
  }
  ~PlainServer() { close(listener_); }
  int port() const { return port_; }
  // What the client sent, who is gone.
  const std::string& Received() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    return received_;
  }

 private:
  const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  int port_ = 0;
  std::string received_;
  std::thread thread_;
};

TEST(PostgresAddress, OfAnotherMachineIsUsedWithTlsOrNotAtAll) {
  for (const char* const sslmode : {"", " sslmode=verify-full"}) {
    PlainServer server;
    EXPECT_CODE(OpenAddress(absl::StrCat("host=store.example.invalid hostaddr=127.0.0.1 user=me port=", server.port(),
                                         " sslrootcert=/dev/null", sslmode)),
                kUnavailable, "server does not support SSL, but SSL was required");
    const char kAsksForTls[] = {0, 0, 0, 8, 4, '\xd2', 22, 47};
    EXPECT_EQ(server.Received(), std::string(kAsksForTls, sizeof kAsksForTls)) << "and sends nothing else";
  }
}

TEST(PostgresAddress, OfNoServerIsUnavailable) {
  const absl::Status status = OpenAddress("host=/nowhere user=terse dbname=postgres");
  EXPECT_CODE(status, kUnavailable, "/nowhere");
  EXPECT_CODE(status, kUnavailable, "check that the server runs and can be reached");
  EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
}

std::string AddressOf(const std::string& folder, absl::string_view rest) { return absl::StrCat("host=", folder, rest); }

TEST_F(PostgresDbTest, WhomTheServerDoesNotKnowItSaysSo) {
  Statement row = db_->Prepare("SELECT current_setting('unix_socket_directories')");
  ASSERT_TRUE(row.Step().value());
  const std::string folder(row.GetText(0));
  // libpq tells no code here.
  EXPECT_CODE(OpenAddress(AddressOf(folder, " user=stranger dbname=postgres")), kUnavailable,
              "role \"stranger\" does not exist");
  EXPECT_CODE(OpenAddress(AddressOf(folder, " user=terse dbname=elsewhere")), kUnavailable,
              "database \"elsewhere\" does not exist");
}

TEST_F(PostgresDbTest, AWriterThatLostItsConnectionIsOver) {
  ASSERT_OK(InsertInTransaction(*db_, 1));
  KillConnections();
  EXPECT_CODE(InsertInTransaction(*db_, 2), kUnavailable, "the connection is lost");
  EXPECT_CODE(db_->Begin(), kUnavailable, "the connection is lost");
  EXPECT_CODE(InsertInTransaction(*db_, 3), kUnavailable, db_->place());
  EXPECT_CODE(InsertNumber(*db_, 3), kUnavailable, "terminating connection due to administrator command");
  EXPECT_CODE(db_->Script("SELECT 1"), kUnavailable, "the connection is lost");
  db_ = Connect();
  EXPECT_EQ(CountRows(*db_), 1);
  ASSERT_OK(db_->Begin());
  ASSERT_OK(InsertNumber(*db_, 2));
  ASSERT_EQ(*db_->Changes(), 1);
  KillConnections();
  EXPECT_OK(InsertNumber(*db_, 3)) << "nobody waited for it";
  EXPECT_CODE(db_->End(absl::OkStatus()), kUnavailable, "the connection is lost");
  EXPECT_CODE(db_->Begin(), kUnavailable, "the connection is lost");
  db_ = Connect();
  EXPECT_EQ(CountRows(*db_), 1);
  KillConnections();
  EXPECT_CODE(db_->Script("SELECT 1"), kUnavailable, "the connection is lost");
}

TEST_F(PostgresDbTest, AReaderThatLostItsConnectionMakesANewOne) {
  ASSERT_OK(InsertInTransaction(*db_, 1));
  const std::unique_ptr<PostgresDb> reader = Connect(PostgresDb::Mode::kReader);
  const auto read = [&]() -> absl::StatusOr<int64_t> {
    if (absl::Status status = reader->BeginReading(); !status.ok()) return status;
    absl::StatusOr<int64_t> count;
    {
      Statement rows = reader->Prepare("SELECT COUNT(*) FROM t");
      const absl::StatusOr<bool> row = rows.Step();
      count = row.ok() ? absl::StatusOr<int64_t>(rows.GetInt(0)) : row.status();
    }
    const absl::Status end = reader->EndReading();
    return end.ok() ? count : end;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*read(), 1);
    KillConnections();
    EXPECT_CODE(read().status(), kUnavailable, "the connection is lost");
  }
  ASSERT_OK(reader->BeginReading());
  EXPECT_EQ(CountRows(*reader), 1);
  KillConnections();
  EXPECT_CODE(reader->EndReading(), kUnavailable, "the connection is lost");
  EXPECT_EQ(*read(), 1);
  EXPECT_CODE(InsertNumber(*reader, 2), kUnavailable, "read-only transaction") << "it is a reader still";
}

TEST(PostgresDbServer, ComesBackAfterACrash) {
  PostgresServer server;
  const std::string address = server.address();
  const auto writer = PostgresDb::Open(address, "s", PostgresDb::Mode::kWriter).value();
  const auto reader = PostgresDb::Open(address, "s", PostgresDb::Mode::kReader).value();
  ASSERT_OK(writer->Script("CREATE SCHEMA s; CREATE TABLE t (i BIGINT PRIMARY KEY)"));
  ASSERT_OK(InsertInTransaction(*writer, 1));
  ASSERT_OK(reader->BeginReading());
  EXPECT_EQ(CountRows(*reader), 1);
  ASSERT_OK(reader->EndReading());
  ASSERT_OK(writer->Begin());
  ASSERT_OK(InsertNumber(*writer, 2));
  ASSERT_EQ(*writer->Changes(), 1);
  server.Crash();
  EXPECT_CODE(writer->End(absl::OkStatus()), kUnavailable, "the connection is lost");
  ASSERT_OK(reader->BeginReading());
  EXPECT_FALSE(reader->Prepare("SELECT COUNT(*) FROM t").Step().ok());
  EXPECT_CODE(reader->EndReading(), kUnavailable, "the connection is lost");
  EXPECT_CODE(reader->BeginReading(), kUnavailable, "the store's server cannot be used");
  EXPECT_CODE(OpenAddress(address), kUnavailable, "check that the server runs");
  server.Start();
  ASSERT_OK(reader->BeginReading());
  EXPECT_EQ(CountRows(*reader), 1);
  ASSERT_OK(reader->EndReading());
  EXPECT_CODE(writer->Begin(), kUnavailable, "the connection is lost");
  const auto next = PostgresDb::Open(address, "s", PostgresDb::Mode::kWriter).value();
  EXPECT_OK(InsertInTransaction(*next, 2));

  // From here on it asks for a password, and nobody has one.
  ASSERT_OK(next->Script(
      "DO $$ BEGIN EXECUTE format('COPY (SELECT ''local all all scram-sha-256'') TO %L', current_setting('hba_file')); "
      "PERFORM pg_reload_conf(); END $$"));
  absl::Status status;
  for (int attempt = 0; attempt < 500 && (status = OpenAddress(address)).ok(); ++attempt) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_CODE(status, kPermissionDenied, "password file");
}

}  // namespace
}  // namespace terse
