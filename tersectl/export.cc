#include "tersectl/export.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/json_text.h"
#include "core/status.h"
#include "proto/export_formats.h"
#include "proto/proto_text.h"
#include "proto/run_config_fit.h"
#include "proto/run_config_loader.h"
#include "tersectl/svg_plot.h"
#include "tersectl/tensorboard.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

// With every byte of a symbol escaped.
constexpr uint64_t kMostVocabularyBytes = uint64_t{512} << 20;

std::string PlotSubtitle(const Summary& summary) {
  std::string text = absl::StrCat(summary.rounds, " rounds, ", summary.clients, " clients, ",
                                  BytesText(summary.wire_bytes_up), " sent up");
  if (summary.compression_up_wire.has_value()) {
    absl::StrAppend(&text, ", compression ", RateText(*summary.compression_up_wire), " on the wire");
  }
  return text;
}

// Returns the choice that asks for a format of the model alone; nullopt where none does.
absl::optional<ExportFormat> FormatOption(v1::ExportRequest::Format format) {
  switch (format) {
    case v1::ExportRequest::FORMAT_TORCHSCRIPT:
      return ExportFormat::kTorchScript;
    case v1::ExportRequest::FORMAT_SAFETENSORS:
      return ExportFormat::kState;
    case v1::ExportRequest::FORMAT_NPZ:
      return ExportFormat::kNpz;
    default:
      return absl::nullopt;
  }
}

struct File {
  std::string name;
  std::string content;
};

}  // namespace

absl::StatusOr<ExportResult> ExportRun(AdminClient& client, const std::string& directory, ExportFormat format) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, client.ListRounds(0, 0));
  std::vector<File> files;
  const uint64_t most = MostModelBytes(status.parameters());
  for (const ExportFormatRow& row : kExportFormats) {
    const absl::optional<ExportFormat> choice = FormatOption(row.format);
    if (!choice.has_value() || (format != ExportFormat::kAll && format != *choice)) continue;
    TERSE_ASSIGN_OR_RETURN(AdminClient::ExportedModel exported, client.Export(row.format, most));
    files.push_back({absl::StrCat("model.", row.ending), std::move(exported.bytes)});
  }
  if (format != ExportFormat::kTensorBoard && !ReadsExamples(status.config())) {
    absl::StatusOr<AdminClient::ExportedModel> symbols =
        client.Export(v1::ExportRequest::FORMAT_VOCABULARY, kMostVocabularyBytes);
    // A coordinator of an earlier release does not know the format.
    if (!symbols.ok() && !absl::IsInvalidArgument(symbols.status())) return symbols.status();
    if (symbols.ok() && !symbols->bytes.empty()) {
      files.push_back({EndingOf(v1::ExportRequest::FORMAT_VOCABULARY), std::move(symbols->bytes)});
    }
  }
  ExportResult result;
  result.summary = Summarize(status, rounds);
  files.push_back({"rounds.csv", RoundsCsv(rounds)});
  files.push_back({"summary.json", JsonText(SummaryJson(result.summary), 2) + "\n"});
  files.push_back({"config.json", JsonText(ToJson(WithLaterDefaults(status.config())), 2) + "\n"});
  const std::vector<EvaluatedPoint> points = EvaluatedPoints(rounds);
  const std::string title =
      absl::StrCat(result.summary.run, HasLossAlone(points) ? ": test loss" : ": accuracy", " against bytes sent");
  files.push_back({"accuracy_vs_bytes.svg", AccuracyPlot(title, PlotSubtitle(result.summary), points)});
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  if (format == ExportFormat::kAll || format == ExportFormat::kTensorBoard) {
    // Always this name: a second export replaces the first, and TensorBoard, which looks for "tfevents", shows no curve
    // twice.
    files.push_back({"tensorboard/events.out.tfevents.terse", TensorBoardEvents(status, rounds)});
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(absl::StrCat(directory, "/tensorboard")));
  }
  for (const File& file : files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), path, {file.content}));
    result.files.push_back(path);
  }
  return result;
}

}  // namespace terse
