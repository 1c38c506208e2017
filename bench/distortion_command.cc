#include "bench/distortion_command.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/sweep.h"
#include "bench/synthetic.h"
#include "bench/update_file.h"
#include "compression/codec_table.h"
#include "core/cli/progress_line.h"
#include "core/file_system.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kColumns[] = "update,codec,setting,bits_per_parameter,relative_squared_error\n";

// Updates of one kind, over which the figures are averaged.
struct Source {
  std::string name;
  Layout layout;
  std::vector<std::vector<float>> updates;
};

double Energy(absl::Span<const float> values) {
  double energy = 0;
  for (float value : values) energy += static_cast<double>(value) * value;
  return energy;
}

// Returns the root mean square of the elements of all updates together.
double RootMeanSquare(const Source& source) {
  double energy = 0;
  for (const std::vector<float>& update : source.updates) energy += Energy(update);
  return std::sqrt(energy / static_cast<double>(source.updates.size() * source.layout.size()));
}

// One line of the file: bits a parameter and ||x - decoded||^2 / ||x||^2, each the mean over the updates.
absl::StatusOr<std::string> Measure(const Source& source, const SweepPoint& point) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeCodec(point.spec, source.layout));
  double bytes = 0, error = 0;
  for (size_t i = 0; i < source.updates.size(); ++i) {
    EncodeOptions options;
    options.key.client = i;
    TERSE_ASSIGN_OR_RETURN(const std::string message, codec->Encode(source.updates[i], options));
    std::vector<float> rest = source.updates[i];
    TERSE_RETURN_IF_ERROR(codec->AddDecoded(message, -1.0f, absl::MakeSpan(rest)));
    bytes += static_cast<double>(message.size());
    error += Energy(rest) / Energy(source.updates[i]);
  }
  const double count = static_cast<double>(source.updates.size());
  return absl::StrCat(source.name, ",", point.curve, ",", point.setting, ",",
                      8 * bytes / (count * static_cast<double>(source.layout.size())), ",", error / count, "\n");
}

absl::StatusOr<std::vector<Source>> Sources(const std::string& path) {
  constexpr int64_t kSide = 1000;
  std::vector<Source> sources;
  sources.push_back({"gaussian", *Layout::Create({{"weight", {kSide, kSide}}}), {Gaussian(kSide * kSide, 1)}});
  if (path.empty()) return sources;
  TERSE_ASSIGN_OR_RETURN(UpdateFile file, ReadUpdateFile(path));
  for (RecordedUpdate& update : file.updates) {
    const std::string name = absl::StrCat("iteration ", update.iteration);
    if (sources.back().name != name) sources.push_back({name, file.layout, {}});
    sources.back().updates.push_back(std::move(update.values));
  }
  return sources;
}

absl::StatusOr<int> RunDistortionCommand(const std::string& updates, const std::string& out) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<Source> sources, Sources(updates));
  std::string csv = kColumns;
  ProgressLine progress(static_cast<double>(sources.size()));
  for (const Source& source : sources) {
    const std::vector<SweepPoint> points = CodecSweep(RootMeanSquare(source));
    for (const SweepPoint& point : points) {
      progress.Begin(absl::StrCat(source.name, ": ", point.curve));
      TERSE_ASSIGN_OR_RETURN(const std::string line, Measure(source, point));
      absl::StrAppend(&csv, line);
      progress.Advance(1.0 / static_cast<double>(points.size()));
    }
  }
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(out));
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), absl::StrCat(out, "/distortion.csv"), {csv}));
  return 0;
}

}  // namespace

void AddDistortionCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub = app->add_subcommand("distortion", "What every codec loses for the bits it takes, as distortion.csv");
  const auto updates = std::make_shared<std::string>();
  const auto out = std::make_shared<std::string>();
  sub->add_option("--updates", *updates, "File of `terse-bench updates`, beside Gaussian numbers")
      ->check(ExistingFile());
  sub->add_option("--out", *out, "Directory to write to")->required();
  sub->callback([=] { *chosen = [updates, out] { return RunDistortionCommand(*updates, *out); }; });
}

}  // namespace terse
