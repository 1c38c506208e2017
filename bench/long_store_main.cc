// Fills a run's directory with the store of a long run and measures it: size, opening, the full check, and the reads of
// `tersectl clients` and `rounds`. What a coordinator answers on it is measured with the coordinator itself.
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
#include "core/status.h"

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

// Makes a run where there is none. Returns whether it has no rounds yet.
absl::StatusOr<bool> PrepareRun(const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> existing, store->Run());
  if (existing.has_value()) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> last, store->LastRound());
    return !last.has_value();
  }
  RunRecord run;
  run.name = "long";
  run.lineage = Id128{1, 1};
  const std::vector<float> weights(79510);
  run.parameters = static_cast<int64_t>(weights.size());
  TERSE_RETURN_IF_ERROR(store->CreateRun(run, weights));
  return true;
}

absl::Status Fill(const std::string& directory, const LongRun& run) {
  const absl::Time begin = absl::Now();
  TERSE_RETURN_IF_ERROR(FillRounds(directory, run));
  std::printf("%-28s %10.2f s\n", "made in", absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

absl::Status Run(const std::string& directory, const LongRun& run) {
  TERSE_ASSIGN_OR_RETURN(const bool is_new, PrepareRun(directory));
  if (is_new) TERSE_RETURN_IF_ERROR(Fill(directory, run));
  const auto bytes = std::filesystem::file_size(directory + "/run.sqlite");
  std::printf("%-28s %10.1f MB\n", "run.sqlite", 1e-6 * static_cast<double>(bytes));
  const auto open = [&](RunStore::Depth depth) { return RunStore::Open(directory, PosixFiles(), depth).status(); };
  TERSE_RETURN_IF_ERROR(Measure("opening", [&] { return open(RunStore::Depth::kRecent); }));
  TERSE_RETURN_IF_ERROR(Measure("opening with the full check", [&] { return open(RunStore::Depth::kEverything); }));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
  TERSE_RETURN_IF_ERROR(Measure("Clients", [&] { return store->Clients().status(); }));
  TERSE_RETURN_IF_ERROR(Measure("ClientTotals", [&] { return store->ClientTotals().status(); }));
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
  if (!understood) {
    std::fprintf(
        stderr,
        "usage: %s DIR [ROUNDS CLIENTS]\nDIR: a new directory, or a run's; one that has rounds is only measured\n",
        argv[0]);
    return 2;
  }
  const absl::Status status = terse::Run(argv[1], run);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
