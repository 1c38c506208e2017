// Values as PostgreSQL takes them, and the binary format of COPY (PostgreSQL's documentation, COPY, "Binary Format").
// Internal to storage/.
#ifndef TERSE_STORAGE_POSTGRES_VALUES_H_
#define TERSE_STORAGE_POSTGRES_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/sql_db.h"

struct pg_result;

namespace terse {

// Object ids of the types that stores use, which PostgreSQL never changes (its catalogue pg_type).
enum PostgresType : unsigned int {
  kBool = 16,
  kBytes = 17,
  kInt64 = 20,
  kInt16 = 21,
  kInt32 = 23,
  kText = 25,
  kFloat64 = 701,
};

// INTERNAL when a column of the result has none of these types.
absl::Status CheckTypes(const pg_result* result);
// A value of a binary result that is not NULL, as a number. IntAt returns 0 for what is no integer, as SQLite does.
int64_t IntAt(const pg_result* result, int row, int column);
double RealAt(const pg_result* result, int row, int column);

// PostgreSQL's text is UTF-8 without zero bytes.
bool IsValidText(absl::string_view text);
// `text` with U+FFFD in place of what PostgreSQL does not take.
std::string ValidText(absl::string_view text);

// UNIMPLEMENTED for values of 2^31 bytes and more, whose length the protocol cannot say.
absl::Status CheckValueBytes(size_t bytes);

// Appends what is before the first row of a COPY, and what is behind the last one.
void BeginCopy(std::string* out);
void EndCopy(std::string* out);
// Appends the beginning of a row of so many values, and returns the cursor that appends them as they are bound, in
// order. `out` must outlive it.
std::unique_ptr<Statement::Cursor> NewCopiedRow(uint16_t values, std::string* out);

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_VALUES_H_
