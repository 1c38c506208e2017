// A place for whole files with names: a folder, or a bucket of a storage service that speaks Amazon's S3.
#ifndef TERSE_TERSECTL_OBJECTS_OBJECT_STORE_H_
#define TERSE_TERSECTL_OBJECTS_OBJECT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// An object that List found.
struct ObjectInfo {
  std::string name;  // the whole name, with the folder that was listed
  int64_t bytes = 0;
};

// Names are relative, parts of them separated by '/'. Statuses: NOT_FOUND when there is no such object, UNAVAILABLE
// when the place does not answer or its disk is in trouble, PERMISSION_DENIED when it refuses, INVALID_ARGUMENT for a
// name that leads elsewhere. Thread-compatible.
class ObjectStore {
 public:
  // Returns the bytes [offset, offset + bytes) of what is stored.
  using ReadPart = absl::FunctionRef<absl::StatusOr<std::string>(int64_t offset, int64_t bytes)>;

  virtual ~ObjectStore() = default;
  // How people call it; has no secret in it.
  virtual std::string address() const = 0;
  // Stores `bytes` bytes under the name, in place of what was there: whole, or not at all. At most kObjectPartBytes of
  // them are in memory.
  virtual absl::Status Put(const std::string& name, int64_t bytes, ReadPart read) = 0;
  // Writes the object to `path`, which is made or replaced, and synced.
  virtual absl::Status Get(const std::string& name, const std::string& path) = 0;
  // The objects FOLDER/NAME, without those in folders below, by name. Empty when there is no such folder.
  virtual absl::StatusOr<std::vector<ObjectInfo>> List(const std::string& folder) = 0;
  // OK when there is no such object.
  virtual absl::Status Remove(const std::string& name) = 0;
};

// The most bytes of an object that Put asks for at once, and the size of a part where a bucket takes an object in
// parts.
inline constexpr int64_t kObjectPartBytes = int64_t{8} << 20;

// Whether the address names a bucket and not a folder.
bool IsBucketAddress(absl::string_view address);
// s3://BUCKET[/PREFIX], with keys and endpoint from the environment (objects/s3_objects.h), or a folder, which is made
// when something is stored. Calls of a bucket end with CANCELLED once `give_up` returns true (HttpClient::Options).
// INVALID_ARGUMENT, FAILED_PRECONDITION when the environment has no keys.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenObjectStore(const std::string& address,
                                                             std::function<bool()> give_up = nullptr);

// Stores bytes that are in memory. The statuses are those of Put.
absl::Status PutBytes(ObjectStore& store, const std::string& name, absl::string_view bytes);
// Stores a file of this machine. UNAVAILABLE also when it gets shorter meanwhile.
absl::Status PutFile(ObjectStore& store, const std::string& name, const std::string& path);

// INVALID_ARGUMENT unless the name is relative, and has no empty part and neither "." nor "..".
absl::Status CheckObjectName(absl::string_view name);

}  // namespace terse

#endif  // TERSE_TERSECTL_OBJECTS_OBJECT_STORE_H_
