#include "storage/temporary_directory.h"

#include <filesystem>
#include <system_error>

namespace terse {

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace terse
