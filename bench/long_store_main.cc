// Makes a coordinator's state directory with the store of a long run, and measures that: size, opening, the full check,
// and the reads of `tersectl clients` and `rounds`. The coordinator itself is measured by bench/measure_serving.py.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/long_store.h"
#include "bench/synthetic.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/run_config_loader.h"

namespace terse {
namespace {

// Prints how long `call` takes and how much of that on a processor, the shortest of three.
template <typename Call>
absl::Status Measure(const char* name, Call call) {
  absl::Duration best = absl::InfiniteDuration();
  double best_cpu = 0;
  for (int i = 0; i < 3; ++i) {
    const absl::Time begin = absl::Now();
    const std::clock_t cpu = std::clock();
    TERSE_RETURN_IF_ERROR(call());
    if (absl::Now() - begin >= best) continue;
    best = absl::Now() - begin;
    best_cpu = 1000.0 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  }
  std::printf("%-28s %10.2f ms, %10.2f ms of a processor\n", name, absl::ToDoubleMilliseconds(best), best_cpu);
  return absl::OkStatus();
}

constexpr char kName[] = "long";
constexpr int64_t kParameters = 79'510;  // of a perceptron

// The run goes on where the store ends: a coordinator serves it, and takes its clients. Data is that in the program.
std::string RunText(const LongRun& run) {
  return absl::StrCat("name = \"", kName, "\"\n[model]\nname = \"perceptron\"\n[data]\nname = \"mnist\"\n",
                      "[train]\nlocal_steps = 1\n[train.optimizer]\nlearning_rate = 0.001\n[codec]\nname = \"sbc\"\n",
                      "[rounds]\ncount = ", run.rounds + 1'000'000, "\nclients = ", run.clients,
                      "\nevaluate_every = 100000000\ndeadline_seconds = 86400\n[ledger]\nkeep_rounds = ",
                      run.retention.rounds, "\n[events]\nkeep = ", run.retention.events, "\n");
}

// The run file is for whoever connects clients. Its path is returned.
absl::StatusOr<std::string> WriteRunFile(const std::string& state, const LongRun& run) {
  const std::string path = FilePath(state, absl::StrCat(kName, ".toml"));
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), path, {RunText(run)}));
  return path;
}

absl::Status CreateRun(RunStore& store, const std::string& state, const LongRun& long_run) {
  TERSE_ASSIGN_OR_RETURN(const std::string path, WriteRunFile(state, long_run));
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(path));
  std::vector<float> weights = Gaussian(kParameters, /*seed=*/1);
  for (float& weight : weights) weight *= 0.05F;
  RunRecord run;
  run.name = kName;
  run.lineage = Id128::Random();
  run.config = config.SerializeAsString();
  run.parameters = kParameters;
  run.created_us = absl::ToUnixMicros(absl::Now());
  return store.CreateRun(run, weights);
}

// Makes a run where there is none. Returns whether it has no rounds yet.
absl::StatusOr<bool> PrepareRun(const std::string& state, const std::string& directory, const LongRun& run) {
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> existing, store->Run());
  if (!existing.has_value()) {
    TERSE_RETURN_IF_ERROR(CreateRun(*store, state, run));
    return true;
  }
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> last, store->LastRound());
  return !last.has_value();
}

absl::Status Fill(const std::string& directory, const LongRun& run) {
  const absl::Time begin = absl::Now();
  TERSE_RETURN_IF_ERROR(FillRounds(directory, run));
  std::printf("%-28s %10.2f s\n", "made in", absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

absl::Status Run(const std::string& state, const LongRun& run) {
  const std::string directory = FilePath(FilePath(state, "runs"), kName);
  TERSE_ASSIGN_OR_RETURN(const bool is_new, PrepareRun(state, directory, run));
  if (is_new) TERSE_RETURN_IF_ERROR(Fill(directory, run));
  const auto bytes = std::filesystem::file_size(directory + "/run.sqlite");
  std::printf("%-28s %10.1f MB\n", "run.sqlite", 1e-6 * static_cast<double>(bytes));
  const auto open = [&](RunStore::Depth depth) { return RunStore::Open(directory, PosixFiles(), depth).status(); };
  TERSE_RETURN_IF_ERROR(Measure("opening", [&] { return open(RunStore::Depth::kRecent); }));
  TERSE_RETURN_IF_ERROR(Measure("opening with the full check", [&] { return open(RunStore::Depth::kEverything); }));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
  TERSE_RETURN_IF_ERROR(Measure("Clients", [&] { return store->Clients().status(); }));
  TERSE_RETURN_IF_ERROR(Measure("ClientTotals", [&] { return store->ClientTotals().status(); }));
  TERSE_RETURN_IF_ERROR(Measure("Totals", [&] { return store->Totals().status(); }));
  TERSE_RETURN_IF_ERROR(
      Measure("Rounds, the newest 1000", [&] { return store->Rounds(run.rounds - 999, run.rounds).status(); }));
  TERSE_RETURN_IF_ERROR(Measure("Rounds, all", [&] { return store->Rounds(1, run.rounds).status(); }));
  return Measure("Events, the newest 1000", [&] { return store->Events(1000).status(); });
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) {
  terse::LongRun run;
  const bool understood =
      argc == 2 || (argc == 4 && absl::SimpleAtoi(argv[2], &run.rounds) && absl::SimpleAtoi(argv[3], &run.clients));
  if (!understood || run.rounds < 1 || run.clients < 1) {
    std::fprintf(stderr,
                 "usage: %s STATE [ROUNDS CLIENTS]\nSTATE: a new directory for terse-coordinator --state, with the run "
                 "'long'; one that has rounds is only measured\nROUNDS, CLIENTS: at least 1\n",
                 argv[0]);
    return 2;
  }
  const absl::Status status = terse::Run(argv[1], run);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
