#include "storage/postgres_values.h"

#include <endian.h>
#include <libpq-fe.h>
#include <utf8.h>

#include <cstring>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status.h"

namespace terse {
namespace {

// The signature, no flags, and an extension of no bytes.
constexpr char kCopyBegin[] = "PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
// A row of -1 values.
constexpr char kCopyEnd[] = "\xff\xff";

// An integer as the server sends it, which is big-endian.
template <typename T>
T LoadBytes(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Appends the number of a row's values, and each behind its length.
class CopiedRow final : public Statement::Cursor {
 public:
  CopiedRow(uint16_t values, std::string* out) : out_(out) { PutBigEndian(htobe16(values)); }

  absl::Status BindInt(int, int64_t value) override { return PutBits(static_cast<uint64_t>(value)); }
  absl::Status BindNull(int) override {
    PutBigEndian(htobe32(static_cast<uint32_t>(-1)));
    return absl::OkStatus();
  }
  absl::Status BindReal(int, double value) override {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return PutBits(bits);
  }
  absl::Status BindText(int, absl::string_view value) override {
    return IsValidText(value) ? PutBytes(value) : PutBytes(ValidText(value));
  }
  absl::Status BindBlob(int, absl::string_view value) override { return PutBytes(value); }
  absl::Status BindId(int, const Id128& value) override { return PutBytes(value.ToBytes()); }

  absl::StatusOr<bool> Step() override { return absl::InternalError("a row that is inserted has no rows"); }
  absl::Status Run() override { return Step().status(); }
  int64_t GetInt(int) const override { return 0; }
  double GetReal(int) const override { return 0; }
  bool IsNull(int) const override { return true; }
  absl::string_view GetText(int) const override { return {}; }
  absl::string_view GetBlob(int) const override { return {}; }

 private:
  template <typename T>
  void PutBigEndian(T swapped) {
    out_->append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
  }
  absl::Status PutBits(uint64_t bits) {
    PutBigEndian(htobe32(sizeof bits));
    PutBigEndian(htobe64(bits));
    return absl::OkStatus();
  }
  absl::Status PutBytes(absl::string_view bytes) {
    TERSE_RETURN_IF_ERROR(CheckValueBytes(bytes.size()));
    PutBigEndian(htobe32(static_cast<uint32_t>(bytes.size())));
    out_->append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  std::string* const out_;
};

}  // namespace

std::string ValidText(absl::string_view text) {
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  return absl::StrReplaceAll(valid, {{absl::string_view("\0", 1), "\xef\xbf\xbd"}});
}

absl::Status CheckTypes(const pg_result* result) {
  for (int column = 0; column < PQnfields(result); ++column) {
    switch (const Oid type = PQftype(result, column)) {
      case kBool:
      case kBytes:
      case kInt16:
      case kInt32:
      case kInt64:
      case kText:
      case kFloat64:
        break;
      default:
        return absl::InternalError(absl::StrCat("column ", column, " has a type (", type, ") that nobody reads"));
    }
  }
  return absl::OkStatus();
}

int64_t IntAt(const pg_result* result, int row, int column) {
  const char* const value = PQgetvalue(result, row, column);
  switch (PQftype(result, column)) {
    case kBool:
      return value[0] != 0 ? 1 : 0;
    case kInt16:
      return static_cast<int16_t>(be16toh(LoadBytes<uint16_t>(value)));
    case kInt32:
      return static_cast<int32_t>(be32toh(LoadBytes<uint32_t>(value)));
    case kInt64:
      return static_cast<int64_t>(be64toh(LoadBytes<uint64_t>(value)));
    default:
      return 0;
  }
}

double RealAt(const pg_result* result, int row, int column) {
  if (PQftype(result, column) != kFloat64) return static_cast<double>(IntAt(result, row, column));
  const uint64_t bits = be64toh(LoadBytes<uint64_t>(PQgetvalue(result, row, column)));
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

bool IsValidText(absl::string_view text) {
  return text.find('\0') == absl::string_view::npos && utf8::is_valid(text.begin(), text.end());
}

absl::Status CheckValueBytes(size_t bytes) {
  if (bytes <= static_cast<size_t>(std::numeric_limits<int>::max())) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("a value of ", bytes, " bytes is larger than PostgreSQL takes"));
}

void BeginCopy(std::string* out) { out->append(kCopyBegin, sizeof kCopyBegin - 1); }

void EndCopy(std::string* out) { out->append(kCopyEnd, sizeof kCopyEnd - 1); }

std::unique_ptr<Statement::Cursor> NewCopiedRow(uint16_t values, std::string* out) {
  return std::make_unique<CopiedRow>(values, out);
}

}  // namespace terse
