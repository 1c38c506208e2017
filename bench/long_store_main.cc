// Fills a run's directory with the store of a long run and measures it: size, opening, the full check, and the reads of
// `tersectl clients` and `rounds`. What a coordinator answers on it is measured with the coordinator itself.
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/long_store.h"
#include "core/status.h"

namespace terse {
namespace {

// Prints how long `call` takes, the shortest of three.
template <typename Call>
absl::Status Measure(const char* name, Call call) {
  absl::Duration best = absl::InfiniteDuration();
  for (int i = 0; i < 3; ++i) {
    const absl::Time begin = absl::Now();
    TERSE_RETURN_IF_ERROR(call());
    best = std::min(best, absl::Now() - begin);
  }
  std::printf("%-28s %10.2f ms\n", name, absl::ToDoubleMilliseconds(best));
  return absl::OkStatus();
}

absl::Status MakeRun(const std::string& directory) {
  if (std::filesystem::exists(directory + "/run.sqlite")) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
  RunRecord run;
  run.name = "long";
  run.lineage = Id128{1, 1};
  const std::vector<float> weights(79510);
  run.parameters = static_cast<int64_t>(weights.size());
  return store->CreateRun(run, weights);
}

absl::Status Run(const std::string& directory, const LongRun& run) {
  TERSE_RETURN_IF_ERROR(MakeRun(directory));
  const absl::Time begin = absl::Now();
  TERSE_RETURN_IF_ERROR(FillRounds(directory, run));
  std::printf("%-28s %10.2f s\n", "made in", absl::ToDoubleSeconds(absl::Now() - begin));
  const auto bytes = std::filesystem::file_size(directory + "/run.sqlite");
  std::printf("%-28s %10.1f MB\n", "run.sqlite", 1e-6 * static_cast<double>(bytes));
  const auto open = [&](RunStore::Depth depth) { return RunStore::Open(directory, PosixFiles(), depth).status(); };
  TERSE_RETURN_IF_ERROR(Measure("opening", [&] { return open(RunStore::Depth::kRecent); }));
  TERSE_RETURN_IF_ERROR(Measure("opening with the full check", [&] { return open(RunStore::Depth::kEverything); }));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
  TERSE_RETURN_IF_ERROR(Measure("Clients", [&] { return store->Clients().status(); }));
  TERSE_RETURN_IF_ERROR(Measure("ClientTotals", [&] { return store->ClientTotals().status(); }));
  TERSE_RETURN_IF_ERROR(Measure("Rounds, the newest 1000",
                                [&] { return store->Rounds(run.rounds - 999, run.rounds).status(); }));
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
    std::fprintf(stderr, "usage: %s DIR [ROUNDS CLIENTS]\nDIR: a new directory, or a run without rounds\n", argv[0]);
    return 2;
  }
  const absl::Status status = terse::Run(argv[1], run);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
