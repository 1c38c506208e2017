// The contents of a MemoryDisk: each file and directory as programs see it, and as it is on the platter, with the
// changes in between. The disk's internals.
#ifndef TERSE_TESTS_TESTING_MEMORY_NODE_H_
#define TERSE_TESTS_TESTING_MEMORY_NODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/random.h"

namespace terse {

// A write is torn in pieces of this size at most; a piece arrives whole or not at all.
inline constexpr int64_t kSectorBytes = 512;

// One file's contents. Not thread-safe.
class MemoryFile {
 public:
  const std::string& bytes() const { return written_; }
  int64_t size() const { return static_cast<int64_t>(written_.size()); }

  // A gap before `offset` reads as zeros.
  void Write(int64_t offset, absl::string_view bytes);
  void Truncate(int64_t size);
  void Sync();
  // A sync that fails: some of what was to be written is on the platter, and a later sync does not try the rest again
  // although programs go on to see it.
  void FailSync(Random* random);
  // The synced contents and some sectors of some later writes, perhaps with a tail of zeros.
  void LosePower(Random* random);

 private:
  struct Change {
    int64_t offset = 0;
    std::string bytes;
    bool truncate = false;  // to `offset`
  };

  static void Apply(int64_t offset, absl::string_view bytes, std::string* contents);
  // Lets some sectors of the unsynced changes arrive.
  void ApplySome(Random* random);

  std::string written_;
  std::string durable_;
  std::vector<Change> unsynced_;
};

class MemoryDirectory;

// A name's target: one of the two.
struct MemoryNode {
  std::shared_ptr<MemoryFile> file;
  std::shared_ptr<MemoryDirectory> directory;
  explicit operator bool() const { return file != nullptr || directory != nullptr; }
};

// One directory's names. Not thread-safe.
class MemoryDirectory {
 public:
  using Names = std::map<std::string, MemoryNode>;

  const Names& names() const { return current_; }
  // An empty node when there is none.
  MemoryNode Find(const std::string& name) const;
  void Add(const std::string& name, MemoryNode node);
  void Remove(const std::string& name);
  // One change: both names or neither.
  void Rename(const std::string& from, const std::string& to);
  void Sync();
  // Keeps the synced names and some of the later changes, in the files and directories below too.
  void LosePower(Random* random);
  // A copy in which everything that programs see is synced.
  std::shared_ptr<MemoryDirectory> Copy() const;

 private:
  using Change = std::vector<std::pair<std::string, MemoryNode>>;  // an empty node removes the name

  static void Apply(const Change& change, Names* names);
  void Make(Change change);

  Names current_;
  Names durable_;
  std::vector<Change> unsynced_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_MEMORY_NODE_H_
