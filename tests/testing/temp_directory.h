// A directory that goes away with the object.
#ifndef TERSE_TESTS_TESTING_TEMP_DIRECTORY_H_
#define TERSE_TESTS_TESTING_TEMP_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace terse {

// In memory where the system has such a file system: these tests are about order, not about the disk's speed.
class TempDirectory {
 public:
  TempDirectory() {
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = std::filesystem::is_directory(memory);
    std::string name = ((usable ? memory : std::filesystem::temp_directory_path()) / "terse-test-XXXXXX").string();
    path_ = mkdtemp(&name[0]);
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }

  // The path of `name` in it; its own without a name.
  std::string Path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_TEMP_DIRECTORY_H_
