#include "tests/testing/memory_vfs.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/memory_disk.h"

namespace terse {

// One connection's view of a file. SQLite calls each from one thread at a time.
struct Connection {
  std::shared_ptr<MemoryHandle> handle;
  std::shared_ptr<MemoryVfs::Shared> shared;
  MemoryDisk* disk = nullptr;
  int level = SQLITE_LOCK_NONE;
  bool names_unsynced = false;  // a new journal: its name becomes durable with its first sync
  bool maps_memory = false;
  uint32_t shared_slots = 0;  // bit masks of the shared memory's locks
  uint32_t exclusive_slots = 0;
};

class MemoryVfs::Shared {
 public:
  explicit Shared(std::shared_ptr<MemoryHandle> handle) : handle_(std::move(handle)) {}

  // False once the process that opened it was killed.
  bool alive() const {
    int64_t size = 0;
    return handle_->Size(&size) == 0;
  }

  int Lock(Connection* me, int level);
  void Unlock(Connection* me, int level);
  bool IsReserved() const;

  int Map(Connection* me, int region, int size, bool extend, void volatile** memory);
  int LockSlots(Connection* me, int first, int count, int flags);
  void Unmap(Connection* me);

 private:
  const std::shared_ptr<MemoryHandle> handle_;  // also keeps the file's address its own
  mutable absl::Mutex mutex_;
  int readers_ ABSL_GUARDED_BY(mutex_) = 0;  // holders of SHARED and above
  Connection* reserved_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Connection* pending_ ABSL_GUARDED_BY(mutex_) = nullptr;  // or exclusive
  int maps_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<char[]>> regions_ ABSL_GUARDED_BY(mutex_);
  std::array<int, SQLITE_SHM_NLOCK> slot_readers_ ABSL_GUARDED_BY(mutex_) = {};
  std::array<bool, SQLITE_SHM_NLOCK> slot_taken_ ABSL_GUARDED_BY(mutex_) = {};
};

int MemoryVfs::Shared::Lock(Connection* me, int level) {
  absl::MutexLock lock(&mutex_);
  if (me->level >= level) return SQLITE_OK;
  if (level == SQLITE_LOCK_SHARED) {
    if (pending_ != nullptr) return SQLITE_BUSY;
    ++readers_;
  } else if (level == SQLITE_LOCK_RESERVED) {
    if (reserved_ != nullptr || pending_ != nullptr) return SQLITE_BUSY;
    reserved_ = me;
  } else {
    if (pending_ != nullptr && pending_ != me) return SQLITE_BUSY;
    if (reserved_ != nullptr && reserved_ != me) return SQLITE_BUSY;
    pending_ = me;
    me->level = SQLITE_LOCK_PENDING;
    if (readers_ > 1) return SQLITE_BUSY;
  }
  me->level = level;
  return SQLITE_OK;
}

void MemoryVfs::Shared::Unlock(Connection* me, int level) {
  absl::MutexLock lock(&mutex_);
  if (me->level <= level) return;
  if (reserved_ == me) reserved_ = nullptr;
  if (pending_ == me) pending_ = nullptr;
  if (level == SQLITE_LOCK_NONE) --readers_;
  me->level = level;
}

bool MemoryVfs::Shared::IsReserved() const {
  absl::MutexLock lock(&mutex_);
  return reserved_ != nullptr || pending_ != nullptr;
}

int MemoryVfs::Shared::Map(Connection* me, int region, int size, bool extend, void volatile** memory) {
  absl::MutexLock lock(&mutex_);
  *memory = nullptr;
  if (!me->maps_memory) {
    me->maps_memory = true;
    ++maps_;
  }
  while (extend && static_cast<int>(regions_.size()) <= region) {
    regions_.push_back(std::make_unique<char[]>(static_cast<size_t>(size)));
  }
  if (region < static_cast<int>(regions_.size())) *memory = regions_[region].get();
  return SQLITE_OK;
}

int MemoryVfs::Shared::LockSlots(Connection* me, int first, int count, int flags) {
  absl::MutexLock lock(&mutex_);
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  uint32_t& mine = exclusive ? me->exclusive_slots : me->shared_slots;
  const auto is_mine = [&mine](int slot) { return (mine >> slot & 1) != 0; };
  if ((flags & SQLITE_SHM_LOCK) != 0) {
    for (int slot = first; slot < first + count; ++slot) {
      const bool free = !slot_taken_[slot] && (!exclusive || slot_readers_[slot] == 0);
      if (!is_mine(slot) && !free) return SQLITE_BUSY;
    }
  }
  for (int slot = first; slot < first + count; ++slot) {
    if (is_mine(slot) == ((flags & SQLITE_SHM_LOCK) != 0)) continue;
    mine ^= 1u << slot;
    if (exclusive) {
      slot_taken_[slot] = is_mine(slot);
    } else {
      slot_readers_[slot] += is_mine(slot) ? 1 : -1;
    }
  }
  return SQLITE_OK;
}

// The last one to leave takes the memory along: the next process starts with an empty one anyway.
void MemoryVfs::Shared::Unmap(Connection* me) {
  absl::MutexLock lock(&mutex_);
  if (!me->maps_memory) return;
  me->maps_memory = false;
  if (--maps_ == 0) regions_.clear();
}

namespace {

// The record that SQLite allocates for an open file.
struct VfsFile {
  sqlite3_file base;
  Connection* connection;
};

Connection& ConnectionOf(sqlite3_file* file) { return *reinterpret_cast<VfsFile*>(file)->connection; }
MemoryVfs& VfsOf(sqlite3_vfs* vfs) { return *static_cast<MemoryVfs*>(vfs->pAppData); }

int Close(sqlite3_file* file) {
  Connection& connection = ConnectionOf(file);
  connection.shared->Unmap(&connection);
  connection.shared->Unlock(&connection, SQLITE_LOCK_NONE);
  delete &connection;
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  int64_t got = 0;
  if (ConnectionOf(file).handle->Read(offset, size, static_cast<char*>(out), &got) != 0) return SQLITE_IOERR_READ;
  if (got == size) return SQLITE_OK;
  memset(static_cast<char*>(out) + got, 0, static_cast<size_t>(size - got));
  return SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  const absl::string_view view(static_cast<const char*>(bytes), static_cast<size_t>(size));
  const int error = ConnectionOf(file).handle->Write(offset, view);
  return error == 0 ? SQLITE_OK : error == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return ConnectionOf(file).handle->Truncate(size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

int Sync(sqlite3_file* file, int) {
  Connection& connection = ConnectionOf(file);
  if (connection.handle->Sync() != 0) return SQLITE_IOERR_FSYNC;
  if (!connection.names_unsynced) return SQLITE_OK;
  if (connection.disk->SyncNames(MemoryDisk::ParentOf(connection.handle->path())) != 0) return SQLITE_IOERR_DIR_FSYNC;
  connection.names_unsynced = false;
  return SQLITE_OK;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  int64_t bytes = 0;
  if (ConnectionOf(file).handle->Size(&bytes) != 0) return SQLITE_IOERR_FSTAT;
  *size = bytes;
  return SQLITE_OK;
}

int Lock(sqlite3_file* file, int level) {
  Connection& connection = ConnectionOf(file);
  return connection.shared->alive() ? connection.shared->Lock(&connection, level) : SQLITE_IOERR_LOCK;
}

int Unlock(sqlite3_file* file, int level) {
  Connection& connection = ConnectionOf(file);
  connection.shared->Unlock(&connection, level);
  return SQLITE_OK;
}

int CheckReservedLock(sqlite3_file* file, int* reserved) {
  *reserved = ConnectionOf(file).shared->IsReserved() ? 1 : 0;
  return SQLITE_OK;
}

int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return static_cast<int>(kSectorBytes); }
// Bytes next to a torn write stay as they are, on this disk as on those that SQLite's own VFS assumes.
int DeviceCharacteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int ShmMap(sqlite3_file* file, int region, int size, int extend, void volatile** memory) {
  Connection& connection = ConnectionOf(file);
  if (!connection.shared->alive()) return SQLITE_IOERR_SHMMAP;
  return connection.shared->Map(&connection, region, size, extend != 0, memory);
}

int ShmLock(sqlite3_file* file, int first, int count, int flags) {
  Connection& connection = ConnectionOf(file);
  if ((flags & SQLITE_SHM_LOCK) != 0 && !connection.shared->alive()) return SQLITE_IOERR_SHMLOCK;
  return connection.shared->LockSlots(&connection, first, count, flags);
}

// This atomic stands in the place of a fence, which ThreadSanitizer does not know.
void ShmBarrier(sqlite3_file*) {
  static std::atomic<uint32_t> barrier{0};
  barrier.fetch_add(1, std::memory_order_seq_cst);
}

int ShmUnmap(sqlite3_file* file, int) {
  Connection& connection = ConnectionOf(file);
  connection.shared->Unmap(&connection);
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kFileMethods = {2,
                                             Close,
                                             Read,
                                             Write,
                                             Truncate,
                                             Sync,
                                             FileSize,
                                             Lock,
                                             Unlock,
                                             CheckReservedLock,
                                             FileControl,
                                             SectorSize,
                                             DeviceCharacteristics,
                                             ShmMap,
                                             ShmLock,
                                             ShmBarrier,
                                             ShmUnmap,
                                             nullptr,
                                             nullptr};

int Open(sqlite3_vfs* self, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  MemoryVfs& vfs = VfsOf(self);
  file->pMethods = nullptr;
  // A file without a name is SQLite's scratch space; it goes with its last handle.
  const std::string path = name != nullptr ? name : "/scratch.sqlite";
  std::shared_ptr<MemoryHandle> handle;
  const bool create = (flags & SQLITE_OPEN_CREATE) != 0;
  if (vfs.disk()->OpenHandle(path, create, &handle) != 0) return SQLITE_CANTOPEN;
  if (name == nullptr && vfs.disk()->Unlink(path) != 0) return SQLITE_CANTOPEN;
  constexpr int kJournals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
  auto connection = std::make_unique<Connection>();
  connection->shared = vfs.SharedOf(handle);
  connection->handle = std::move(handle);
  connection->disk = vfs.disk();
  connection->names_unsynced = create && (flags & kJournals) != 0;
  reinterpret_cast<VfsFile*>(file)->connection = connection.release();
  file->pMethods = &kFileMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* self, const char* name, int sync_directory) {
  MemoryDisk* disk = VfsOf(self).disk();
  const int error = disk->Unlink(name);
  if (error != 0) return error == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
  if (sync_directory == 0 || disk->SyncNames(MemoryDisk::ParentOf(name)) == 0) return SQLITE_OK;
  return SQLITE_IOERR_DIR_FSYNC;
}

int Access(sqlite3_vfs* self, const char* name, int, int* result) {
  *result = VfsOf(self).disk()->SizeOf(name) > 0 ? 1 : 0;
  return SQLITE_OK;
}

int FullPathname(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs*, int size, char* out) {
  sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
  return system->xRandomness(system, size, out);
}

// The holder of a lock runs in the same thread, so waiting would not help.
int Sleep(sqlite3_vfs*, int microseconds) { return microseconds; }

int CurrentTime(sqlite3_vfs*, sqlite3_int64* now) {
  sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
  return system->xCurrentTimeInt64(system, now);
}

int CurrentTimeDays(sqlite3_vfs*, double* now) {
  sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
  return system->xCurrentTime(system, now);
}

int GetLastError(sqlite3_vfs*, int, char*) { return 0; }

std::string NextName() {
  static std::atomic<int64_t> count{0};
  return absl::StrCat("terse-memory-", count.fetch_add(1));
}

}  // namespace

MemoryVfs::MemoryVfs(MemoryDisk* disk) : disk_(disk), name_(NextName()), vfs_(std::make_unique<sqlite3_vfs>()) {
  *vfs_ = {};
  vfs_->iVersion = 2;
  vfs_->szOsFile = sizeof(VfsFile);
  vfs_->mxPathname = 512;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = Open;
  vfs_->xDelete = Delete;
  vfs_->xAccess = Access;
  vfs_->xFullPathname = FullPathname;
  vfs_->xRandomness = Randomness;
  vfs_->xSleep = Sleep;
  vfs_->xCurrentTime = CurrentTimeDays;
  vfs_->xGetLastError = GetLastError;
  vfs_->xCurrentTimeInt64 = CurrentTime;
  sqlite3_vfs_register(vfs_.get(), /*makeDflt=*/0);
}

MemoryVfs::~MemoryVfs() { sqlite3_vfs_unregister(vfs_.get()); }

std::shared_ptr<MemoryVfs::Shared> MemoryVfs::SharedOf(const std::shared_ptr<MemoryHandle>& handle) {
  absl::MutexLock lock(&mutex_);
  std::weak_ptr<Shared>& slot = shared_[handle->file()];
  std::shared_ptr<Shared> shared = slot.lock();
  if (shared == nullptr || !shared->alive()) {
    shared = std::make_shared<Shared>(handle);
    slot = shared;
  }
  return shared;
}

}  // namespace terse
