// The hash that proves a backup's stream (terse.v1.BackupChunk) to be whole.
#ifndef TERSE_PROTO_BACKUP_HASH_H_
#define TERSE_PROTO_BACKUP_HASH_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "core/id128.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// A chain of XXH3-128 over the chunks in their order: h_0 = 0, h_i = H(h_{i-1}, name_i, 0x00, size_i in decimal, 0x00,
// data_i). A value type.
class BackupHash {
 public:
  void Add(const v1::BackupChunk& chunk) {
    const absl::string_view separator("\0", 1);
    hash_ = HashBytes(absl::StrCat(hash_.ToBytes(), chunk.name(), separator, chunk.size(), separator, chunk.data()));
  }
  std::string ToBytes() const { return hash_.ToBytes(); }

 private:
  Id128 hash_;
};

}  // namespace terse

#endif  // TERSE_PROTO_BACKUP_HASH_H_
