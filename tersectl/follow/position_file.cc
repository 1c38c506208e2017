#include "tersectl/follow/position_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/file_system.h"
#include "core/id128.h"
#include "core/status.h"
#include "tersectl/print.h"

namespace terse {
namespace {

constexpr char kSuffix[] = ".json";

std::string PrefixOf(const std::string& kind, const std::string& url) {
  return absl::StrCat(kind, "-", HashBytes(url).ToHex().substr(0, 16), "-");
}

}  // namespace

PositionFile::PositionFile(const std::string& directory, const std::string& kind, const std::string& url,
                           const std::string& lineage)
    : path_(FilePath(directory, absl::StrCat(PrefixOf(kind, url), lineage, kSuffix))) {}

absl::StatusOr<std::vector<std::string>> PositionFile::Lineages(const std::string& directory, const std::string& kind,
                                                                const std::string& url) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> files, PosixFiles().List(directory));
  std::vector<std::string> lineages;
  for (absl::string_view file : files) {
    if (absl::ConsumePrefix(&file, PrefixOf(kind, url)) && absl::ConsumeSuffix(&file, kSuffix)) {
      lineages.emplace_back(file);
    }
  }
  return lineages;
}

absl::StatusOr<nlohmann::ordered_json> PositionFile::Read() const {
  const absl::StatusOr<std::string> text = PosixFiles().Read(path_);
  if (absl::IsNotFound(text.status())) return nlohmann::ordered_json::object();
  if (!text.ok()) return text.status();
  nlohmann::ordered_json position = nlohmann::ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  return position.is_object() ? absl::StatusOr<nlohmann::ordered_json>(std::move(position)) : Damaged("no JSON object");
}

absl::Status PositionFile::Write(const nlohmann::ordered_json& position) const {
  return ReplaceFile(PosixFiles(), path_, {JsonText(position)});
}

absl::Status PositionFile::Remove() const { return PosixFiles().Remove(path_); }

absl::Status PositionFile::Damaged(const std::string& why) const {
  return absl::DataLossError(
      absl::StrCat(path_, " is damaged (", why, "); remove it, and nothing is sent that happened before that"));
}

}  // namespace terse
