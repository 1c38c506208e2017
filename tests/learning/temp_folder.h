// A folder for the files of one test.
#ifndef TERSE_TESTS_LEARNING_TEMP_FOLDER_H_
#define TERSE_TESTS_LEARNING_TEMP_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace terse {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "terse-learning-XXXXXX").string();
    path_ = mkdtemp(&name[0]);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string file = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

 private:
  std::string path_;
};

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_TEMP_FOLDER_H_
