#include "bench/memory_command.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "bench/scripted_coordinator.h"
#include "client/session.h"
#include "core/file_system.h"
#include "core/median.h"
#include "core/random.h"
#include "core/status.h"
#include "learning/batches.h"
#include "learning/blueprint.h"
#include "learning/local_trainer.h"
#include "learning/models/model_table.h"
#include "learning/runtime.h"
#include "learning/script_model.h"
#include "simulation/process_facts.h"
#include "storage/client_state.h"
#include "storage/run_store.h"

namespace terse {
namespace {

// The number of processes that a figure is the median of: the memory that the allocator loses between live blocks
// differs by a tenth from process to process.
constexpr int kTrials = 5;

struct MemoryOptions {
  std::string model = "resnet50";
  int64_t batch = 4;
  std::string optimizer = "sgd";
  double momentum = 0;
  std::string codec = "sbc";
  std::string durability = "strict";
  int64_t rounds = 3;
  double limit = 0;
};

RunConfig MakeRun(const MemoryOptions& options) {
  RunConfig run;
  run.name = "memory";
  run.seed = 1;
  run.durability = options.durability == "strict" ? Durability::kStrict : Durability::kRelaxed;
  run.model.name = options.model;
  run.data.name = "synthetic";
  run.data.partition = "all";
  run.train.local_steps = 2;
  run.train.batch_size = options.batch;
  run.train.optimizer = {options.optimizer, 1e-4, options.momentum, 0.9, 0.999, 1e-8, /*momentum_masking=*/true};
  run.codec.name = options.codec;
  run.rounds.clients = 1;
  return run;
}

// One batch of noise, or a text of two windows.
absl::StatusOr<std::shared_ptr<const Dataset>> Noise(const RunConfig& run) {
  TERSE_ASSIGN_OR_RETURN(const ModelDefinition model, FindModel(run.model));
  auto dataset = std::make_shared<Dataset>();
  dataset->description = "noise";
  dataset->classes = model.classes;
  Random random(1);
  if (model.input == Element::kInt32) {
    dataset->task = Task::kText;
    dataset->train_text.symbols.resize(run.train.batch_size * (2 * run.train.unroll + 1));
    for (int32_t& symbol : dataset->train_text.symbols) symbol = static_cast<int32_t>(random.Below(model.classes));
    return dataset;
  }
  int64_t each = 1;
  for (const int64_t dimension : model.input_shape) each *= dimension;
  std::vector<uint8_t> pixels(run.train.batch_size * each), labels(run.train.batch_size);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random.Below(256));
  for (uint8_t& label : labels) label = static_cast<uint8_t>(random.Below(std::min<int64_t>(256, model.classes)));
  dataset->train = {Column::FromBytes(model.input_shape, pixels), Column::FromBytes({}, labels)};
  return dataset;
}

// Largest resident size of this process so far, or since ForgetPeakMemory.
absl::StatusOr<int64_t> PeakBytes() {
  TERSE_ASSIGN_OR_RETURN(const ProcessMemory memory, ReadProcessMemory("self"));
  return memory.peak_kib * 1024;
}

// Runs `body` in a process of its own, set up as a client's, and returns its result.
absl::StatusOr<int64_t> InProcess(const std::function<absl::StatusOr<int64_t>()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "fork");
  if (child == 0) {
    ConfigureThreads(1);
    ConfigureMalloc();
    const absl::StatusOr<int64_t> result = body();
    if (!result.ok()) std::fprintf(stderr, "terse-bench: %s\n", result.status().ToString().c_str());
    const bool written = result.ok() && write(ends[1], &*result, sizeof *result) == sizeof *result;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  int64_t value = 0;
  const bool got = read(ends[0], &value, sizeof value) == sizeof value;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!got) return absl::InternalError("the measured process failed");
  return value;
}

// Returns the median of the results of `body` in kTrials processes.
absl::StatusOr<int64_t> MedianOfTrials(const std::function<absl::StatusOr<int64_t>()>& body) {
  std::vector<int64_t> results(kTrials);
  for (int64_t& result : results) {
    TERSE_ASSIGN_OR_RETURN(result, InProcess(body));
  }
  return MedianOf(absl::MakeSpan(results));
}

// The peak of forward and backward passes of one batch: weights, gradient, activations, LibTorch itself.
absl::StatusOr<int64_t> MeasureBatch(const RunConfig& run, int64_t steps) {
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset, Noise(run));
  TERSE_ASSIGN_OR_RETURN(const auto blueprint, MakeBlueprint(run.model));
  const std::unique_ptr<ScriptModel> model = blueprint->Make(c10::kCPU);
  model->SetWeights(blueprint->StartWeights(run.seed));
  TERSE_ASSIGN_OR_RETURN(const Loss* loss,
                         FindLoss(run.train.loss, dataset->task, dataset->classes, blueprint->outputs()));
  std::unique_ptr<BatchSource> batches;
  if (dataset->task == Task::kText) {
    const auto text = std::shared_ptr<const Text>(dataset, &dataset->train_text);
    TERSE_ASSIGN_OR_RETURN(
        batches, MakeTextBatches(text, {0, text->count()}, run.train.batch_size, run.train.unroll, c10::kCPU));
  } else {
    std::vector<uint32_t> all(run.train.batch_size);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
    TERSE_ASSIGN_OR_RETURN(batches, MakeExampleBatches(dataset, all, run.data, run.train.batch_size, 1, 0, c10::kCPU));
  }
  TERSE_RETURN_IF_ERROR(ForgetPeakMemory());
  ScriptModel::State state = model->InitialState(run.train.batch_size);
  // This takes as many steps as the client does, because the allocator's own losses grow with the first of them.
  for (int64_t step = 0; step < steps; ++step) model->LossAndGradient(batches->Next(), *loss, &state);
  return PeakBytes();
}

// A client's session from its first check-in to the end of its run, with its state on disk.
absl::StatusOr<int64_t> MeasureClient(const RunConfig& run, const MemoryOptions& options,
                                      const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset, Noise(run));
  const std::string path = directory + "/state";
  std::filesystem::remove_all(path);
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<ClientState> state, ClientState::Open(path));
  SystemClock clock;
  ClientSession::Options session;
  session.name = "client";
  session.process = {1, 2};
  session.state = state.get();
  session.clock = &clock;
  session.make_trainer = [&](const RunConfig& config, const Shard& shard,
                             absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(std::shared_ptr<const Blueprint> blueprint, MakeBlueprint(config.model, module));
    return MakeLocalTrainer(config, shard, std::move(blueprint), dataset, "cpu");
  };
  session.keep_going = [] { return true; };
  session.log = [](LogLevel, const LogFields&, const std::string&) {};
  ClientSession client(std::move(session));
  ScriptedCoordinator coordinator(std::make_shared<const RunConfig>(run), directory + "/checkpoint", options.rounds);
  TERSE_RETURN_IF_ERROR(client.Run(&coordinator));
  TERSE_RETURN_IF_ERROR(client.Flush());
  return PeakBytes();
}

absl::StatusOr<int64_t> WriteCheckpoint(const RunConfig& run, const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(std::vector<float> weights, InitialWeights(run.model, run.seed));
  Checkpoint checkpoint;
  checkpoint.model_hash = HashWeights(weights);
  checkpoint.weights = std::move(weights);
  const std::string bytes = SerializeCheckpoint(checkpoint);
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), directory + "/checkpoint", {bytes}));
  return 0;
}

absl::StatusOr<int> Measure(const RunConfig& run, const MemoryOptions& options, const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const Layout layout, ModelLayout(run.model));
  TERSE_RETURN_IF_ERROR(InProcess([&] { return WriteCheckpoint(run, directory); }).status());
  const int64_t steps = options.rounds * run.train.local_steps;
  TERSE_ASSIGN_OR_RETURN(const int64_t batch, MedianOfTrials([&] { return MeasureBatch(run, steps); }));
  TERSE_ASSIGN_OR_RETURN(const int64_t peak, MedianOfTrials([&] { return MeasureClient(run, options, directory); }));
  const double mib = 1 << 20, model = 4.0 * static_cast<double>(layout.size());
  const double working = static_cast<double>(batch) - 2 * model;
  const double factor = (static_cast<double>(peak) - working) / model;
  std::printf("%s", absl::StrFormat("model        %8.1f MiB, %d parameters and buffers\n"
                                    "working set  %8.1f MiB of a batch of %d, without weights and gradient\n"
                                    "peak         %8.1f MiB\n"
                                    "peak less the working set is %.2f times the model\n",
                                    model / mib, layout.size(), working / mib, options.batch,
                                    static_cast<double>(peak) / mib, factor)
                        .c_str());
  return options.limit > 0 && factor > options.limit ? 1 : 0;
}

absl::StatusOr<int> RunMemoryCommand(const MemoryOptions& options) {
  std::string directory = (std::filesystem::temp_directory_path() / "terse-memory-XXXXXX").string();
  if (mkdtemp(&directory[0]) == nullptr) return absl::ErrnoToStatus(errno, directory);
  const absl::StatusOr<int> code = Measure(MakeRun(options), options, directory);
  std::filesystem::remove_all(directory);
  return code;
}

}  // namespace

void AddMemoryCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub =
      app->add_subcommand("memory", "What a client's process takes at its peak, as a multiple of the model");
  const auto options = std::make_shared<MemoryOptions>();
  sub->add_option("--model", options->model, "Row of the model table")->capture_default_str();
  sub->add_option("--batch", options->batch, "Examples of a batch")->check(WholeNumber(1, 4096))->capture_default_str();
  sub->add_option("--optimizer", options->optimizer, "sgd or adam")
      ->check(OneOf({"sgd", "adam"}))
      ->capture_default_str();
  sub->add_option("--momentum", options->momentum, "Of sgd")->check(Number(0.0, 0.999))->capture_default_str();
  sub->add_option("--codec", options->codec, "Row of the codec table")->capture_default_str();
  sub->add_option("--durability", options->durability, "strict or relaxed")
      ->check(OneOf({"strict", "relaxed"}))
      ->capture_default_str();
  sub->add_option("--rounds", options->rounds, "Rounds of two local steps")
      ->check(WholeNumber(1, 1000))
      ->capture_default_str();
  sub->add_option("--limit", options->limit, "Exit with 1 above this multiple; 0: never")
      ->check(Number(0))
      ->capture_default_str();
  sub->callback([=] { *chosen = [options] { return RunMemoryCommand(*options); }; });
}

}  // namespace terse
