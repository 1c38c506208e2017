#include "tests/testing/memory_node.h"

#include <algorithm>

namespace terse {
namespace {

// Draws how likely one unsynced change arrives: now and then all or none, so that whole and empty outcomes are common.
double DrawArrival(Random* random) {
  switch (random->Below(5)) {
    case 0:
      return 0.0;
    case 1:
      return 1.0;
    default:
      return random->Uniform();
  }
}

}  // namespace

void MemoryFile::Apply(int64_t offset, absl::string_view bytes, std::string* contents) {
  const size_t end = static_cast<size_t>(offset) + bytes.size();
  if (contents->size() < end) contents->resize(end, '\0');
  std::copy(bytes.begin(), bytes.end(), contents->begin() + offset);
}

void MemoryFile::Write(int64_t offset, absl::string_view bytes) {
  Apply(offset, bytes, &written_);
  unsynced_.push_back({offset, std::string(bytes), false});
}

void MemoryFile::Truncate(int64_t size) {
  written_.resize(static_cast<size_t>(size), '\0');
  unsynced_.push_back({size, "", true});
}

void MemoryFile::Sync() {
  for (const Change& change : unsynced_) {
    if (change.truncate) {
      durable_.resize(static_cast<size_t>(change.offset), '\0');
    } else {
      Apply(change.offset, change.bytes, &durable_);
    }
  }
  unsynced_.clear();
}

void MemoryFile::ApplySome(Random* random) {
  const double arrival = DrawArrival(random);
  for (const Change& change : unsynced_) {
    if (change.truncate) {
      if (random->Uniform() < arrival) durable_.resize(static_cast<size_t>(change.offset), '\0');
      continue;
    }
    const absl::string_view bytes = change.bytes;
    const int64_t end = change.offset + static_cast<int64_t>(bytes.size());
    for (int64_t at = change.offset; at < end;) {
      const int64_t next = std::min(end, (at / kSectorBytes + 1) * kSectorBytes);
      if (random->Uniform() < arrival) Apply(at, bytes.substr(at - change.offset, next - at), &durable_);
      at = next;
    }
  }
  unsynced_.clear();
}

void MemoryFile::FailSync(Random* random) { ApplySome(random); }

void MemoryFile::LosePower(Random* random) {
  // The size is metadata and may be ahead of the data: the tail reads as zeros.
  const bool longer = !unsynced_.empty() && random->Below(4) == 0;
  ApplySome(random);
  if (longer && durable_.size() < written_.size()) durable_.resize(written_.size(), '\0');
  written_ = durable_;
}

MemoryNode MemoryDirectory::Find(const std::string& name) const {
  const auto it = current_.find(name);
  return it == current_.end() ? MemoryNode() : it->second;
}

void MemoryDirectory::Apply(const Change& change, Names* names) {
  for (const auto& [name, node] : change) {
    if (node) {
      (*names)[name] = node;
    } else {
      names->erase(name);
    }
  }
}

void MemoryDirectory::Make(Change change) {
  Apply(change, &current_);
  unsynced_.push_back(std::move(change));
}

void MemoryDirectory::Add(const std::string& name, MemoryNode node) { Make({{name, std::move(node)}}); }

void MemoryDirectory::Remove(const std::string& name) { Make({{name, MemoryNode()}}); }

void MemoryDirectory::Rename(const std::string& from, const std::string& to) {
  Make({{to, Find(from)}, {from, MemoryNode()}});
}

void MemoryDirectory::Sync() {
  for (const Change& change : unsynced_) Apply(change, &durable_);
  unsynced_.clear();
}

void MemoryDirectory::LosePower(Random* random) {
  const double arrival = DrawArrival(random);
  for (const Change& change : unsynced_) {
    if (random->Uniform() < arrival) Apply(change, &durable_);
  }
  unsynced_.clear();
  current_ = durable_;
  for (const auto& [name, node] : current_) {
    if (node.file != nullptr) node.file->LosePower(random);
    if (node.directory != nullptr) node.directory->LosePower(random);
  }
}

std::shared_ptr<MemoryDirectory> MemoryDirectory::Copy() const {
  auto copy = std::make_shared<MemoryDirectory>();
  for (const auto& [name, node] : current_) {
    MemoryNode fresh;
    if (node.file != nullptr) {
      fresh.file = std::make_shared<MemoryFile>();
      fresh.file->Write(0, node.file->bytes());
      fresh.file->Sync();
    } else {
      fresh.directory = node.directory->Copy();
    }
    copy->Add(name, std::move(fresh));
  }
  copy->Sync();
  return copy;
}

}  // namespace terse
