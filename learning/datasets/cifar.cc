#include "learning/datasets/cifar.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/datasets/example_parts.h"
#include "learning/datasets/file_bytes.h"

namespace terse {
namespace {

constexpr int64_t kImage = 3 * 32 * 32;
constexpr int64_t kRecord = 1 + kImage;
constexpr int kAnyByte = 255;

absl::Status Append(const FileBytes& file, int largest_label, std::vector<uint8_t>* images,
                    std::vector<uint8_t>* labels) {
  if (file.size() == 0 || file.size() % kRecord != 0) {
    return file.Malformed(
        file.size() / kRecord * kRecord,
        absl::StrCat("the file has ", file.size(), " bytes, which is not a whole number of records of ", kRecord));
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.bytes().data());
  for (int64_t start = 0; start < file.size(); start += kRecord) {
    const uint8_t* record = bytes + start;
    if (*record > largest_label) {
      return file.Malformed(start, absl::StrCat("label ", static_cast<int>(*record), " is not in 0..", largest_label));
    }
    labels->push_back(*record);
    images->insert(images->end(), record + 1, record + kRecord);
  }
  return absl::OkStatus();
}

absl::StatusOr<Examples> ReadBatches(const std::vector<std::string>& paths, int largest_label) {
  std::vector<FileBytes> files;
  int64_t size = 0;
  for (const std::string& path : paths) {
    TERSE_ASSIGN_OR_RETURN(FileBytes file, FileBytes::Open(path));
    size += file.size();
    files.push_back(std::move(file));
  }
  std::vector<DataFile> places;
  std::vector<uint8_t> images, labels;
  images.reserve(size);
  for (const FileBytes& file : files) {
    places.push_back({file.name(), static_cast<int64_t>(labels.size())});
    TERSE_RETURN_IF_ERROR(Append(file, largest_label, &images, &labels));
  }
  return Examples{Column::FromBytes({3, 32, 32}, std::move(images)), Column::FromBytes({}, std::move(labels)),
                  std::move(places)};
}

}  // namespace

absl::StatusOr<Dataset> LoadCifar10(const DataSpec& spec, const std::string& data_dir) {
  std::vector<std::string> paths;
  for (const absl::string_view name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                       "data_batch_5.bin", "test_batch.bin"}) {
    TERSE_ASSIGN_OR_RETURN(paths.emplace_back(), FindDataFile(data_dir, {"cifar10", "cifar-10-batches-bin"}, name,
                                                              "put CIFAR-10's binary files there"));
  }
  const std::string test = paths.back();
  paths.pop_back();
  DataParts parts;
  parts.train = data_dir;
  parts.test = test;
  TERSE_ASSIGN_OR_RETURN(Dataset dataset, LoadExampleParts("CIFAR-10", parts, [&](const std::string& path) {
                           return ReadBatches(path == test ? std::vector<std::string>{test} : paths, 9);
                         }));
  dataset.classes = 10;
  return dataset;
}

absl::StatusOr<Dataset> LoadCifar(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  return LoadExampleParts("CIFAR images", parts, [](const std::string& path) -> absl::StatusOr<Examples> {
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListDataFiles(path, ".bin"));
    return ReadBatches(files, kAnyByte);
  });
}

}  // namespace terse
