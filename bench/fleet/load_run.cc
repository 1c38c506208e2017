#include "bench/fleet/load_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/file_system.h"
#include "core/run_config.h"
#include "core/status.h"
#include "learning/models/model_table.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

constexpr char kExact[] = "lenet5_caffe";
constexpr char kTestFile[] = "test.libsvm";
constexpr int64_t kClasses = 10;
// Rounds beyond those that are measured: the run goes on until it is stopped.
constexpr int64_t kMoreRounds = 1'000'000;

absl::StatusOr<int64_t> ParametersOf(const ModelSpec& spec) {
  TERSE_ASSIGN_OR_RETURN(const Layout layout, ModelLayout(spec));
  return layout.size();
}

ModelSpec PerceptronWith(int64_t inputs) {
  ModelSpec spec;
  spec.name = "perceptron";
  spec.inputs = inputs;
  spec.classes = kClasses;
  return spec;
}

// The size of a perceptron grows by the same number with each input.
absl::StatusOr<ModelSpec> NearestModel(int64_t parameters) {
  ModelSpec exact;
  exact.name = kExact;
  TERSE_ASSIGN_OR_RETURN(const int64_t has, ParametersOf(exact));
  if (has == parameters) return exact;
  TERSE_ASSIGN_OR_RETURN(const int64_t least, ParametersOf(PerceptronWith(1)));
  TERSE_ASSIGN_OR_RETURN(const int64_t next, ParametersOf(PerceptronWith(2)));
  const int64_t each = next - least;
  return PerceptronWith(1 + std::max<int64_t>(0, parameters - least + each / 2) / each);
}

// The data are the last table, which more keys may follow.
std::string ModelAndData(const ModelSpec& model) {
  if (model.name == kExact) return absl::StrCat("[model]\nname = \"", kExact, "\"\n[data]\nname = \"mnist\"\n");
  return absl::StrCat("[model]\nname = \"perceptron\"\ninputs = ", model.inputs, "\nclasses = ", model.classes,
                      "\n[data]\nname = \"libsvm\"\ntest = \"", kTestFile, "\"\nfeatures = ", model.inputs, "\n");
}

std::string RunText(const LoadRunOptions& options, const ModelSpec& model) {
  std::string text = absl::StrCat("name = \"load\"\n", ModelAndData(model));
  // The coordinator's own clients are the relays, where there are some. Data are shared out among those below.
  const int64_t clients = options.relays > 0 ? options.relays : options.clients;
  if (options.relays > 0) absl::StrAppend(&text, "shards = ", options.clients, "\n");
  absl::StrAppend(&text, "[train]\nlocal_steps = 1\n[train.optimizer]\nlearning_rate = 0.001\n",
                  "[codec]\nname = \"sbc\"\ndensity = ", options.density, "\n");
  if (!options.downstream.empty()) absl::StrAppend(&text, "downstream = \"", options.downstream, "\"\n");
  absl::StrAppend(&text, "[downstream]\ndensity = ", options.density, "\n");
  absl::StrAppend(&text, "[rounds]\ncount = ", options.rounds + kMoreRounds, "\nclients = ", clients,
                  "\nevaluate_every = ", options.rounds + kMoreRounds, "\ndeadline_seconds = 86400\n");
  return text;
}

// One example, of the last class. LIBSVM's reader takes no more than 256 numbers for a byte of the file, so a comment
// makes it long enough.
std::string OneExample(int64_t inputs) {
  return absl::StrCat(kClasses - 1, " 1:1\n#", std::string(inputs / 256 + 1, ' '), "\n");
}

absl::Status WriteText(const std::string& path, absl::string_view text) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, PosixFiles().Create(path));
  return file->Append(text);
}

}  // namespace

absl::StatusOr<LoadRun> WriteLoadRun(const LoadRunOptions& options, const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const ModelSpec model, NearestModel(options.parameters));
  LoadRun run;
  run.model = model.name;
  TERSE_ASSIGN_OR_RETURN(run.parameters, ParametersOf(model));
  run.run_file = FilePath(directory, "load.toml");
  TERSE_RETURN_IF_ERROR(WriteText(run.run_file, RunText(options, model)));
  if (model.name != kExact) {
    run.data = FilePath(directory, "data");
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(run.data));
    TERSE_RETURN_IF_ERROR(WriteText(FilePath(run.data, kTestFile), OneExample(model.inputs)));
  }
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(run.run_file));
  TERSE_RETURN_IF_ERROR(ToCore(config).status());
  return run;
}

}  // namespace terse
