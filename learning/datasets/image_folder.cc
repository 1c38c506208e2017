#include "learning/datasets/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "learning/datasets/example_parts.h"
#include "learning/datasets/file_bytes.h"
#include "learning/datasets/image_decode.h"

namespace terse {
namespace {

// Sorted names in a folder, all of them folders or all of them files.
absl::StatusOr<std::vector<std::string>> List(const std::string& path, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name[0] == '.') continue;
    if (it->is_directory(error) != folders) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, "/", name, ": ", folders ? "a file" : "a folder", " stands where ",
                       folders ? "classes are folders" : "a class has its images", "; move it away"));
    }
    names.push_back(std::move(name));
  }
  if (error) return absl::NotFoundError(absl::StrCat(path, ": cannot be listed (", error.message(), ")"));
  std::sort(names.begin(), names.end());
  return names;
}

struct Images {
  std::vector<int64_t> shape;
  std::vector<uint8_t> samples;
  std::vector<int64_t> labels;
};

// Adds the images of one class.
absl::Status AppendClass(const std::string& folder, int64_t label, Images* images) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(folder, /*folders=*/false));
  for (const std::string& name : names) {
    TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(absl::StrCat(folder, "/", name)));
    TERSE_ASSIGN_OR_RETURN(const Image image, DecodeImage(file));
    const std::vector<int64_t> shape = {image.channels, image.rows, image.columns};
    if (images->labels.empty()) images->shape = shape;
    if (shape != images->shape) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": the image has ", absl::StrJoin(shape, " x "),
                                                     " samples, the first one ", absl::StrJoin(images->shape, " x "),
                                                     "; bring all images to one size and kind"));
    }
    images->samples.insert(images->samples.end(), image.planes.begin(), image.planes.end());
    images->labels.push_back(label);
    if (static_cast<int64_t>(images->samples.size()) > kMaxDataBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.name(), ": with this one the images take more than 16 GiB; use fewer or smaller ones"));
    }
  }
  return absl::OkStatus();
}

// The first call decides which classes there are.
absl::StatusOr<Examples> ReadFolder(const std::string& path, std::vector<std::string>* classes) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(path, /*folders=*/true));
  if (classes->empty() && names.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the folder has ", names.size(), " classes; give each class a folder in it"));
  }
  if (classes->empty()) *classes = names;
  Images images;
  for (const std::string& name : names) {
    const auto found = std::lower_bound(classes->begin(), classes->end(), name);
    if (found == classes->end() || *found != name) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, "/", name, ": the training folder has no such class; it has ", absl::StrJoin(*classes, ", ")));
    }
    TERSE_RETURN_IF_ERROR(AppendClass(absl::StrCat(path, "/", name), found - classes->begin(), &images));
  }
  return PairExamples(Column::FromBytes(std::move(images.shape), std::move(images.samples)),
                      Column::FromInt64s({}, std::move(images.labels)), path);
}

}  // namespace

absl::StatusOr<Dataset> LoadImageFolder(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  std::vector<std::string> classes;
  TERSE_ASSIGN_OR_RETURN(Dataset dataset, LoadExampleParts("images", parts, [&classes](const std::string& path) {
                           return ReadFolder(path, &classes);
                         }));
  dataset.classes = classes.size();
  return dataset;
}

}  // namespace terse
