// terse-campaign: kills real processes, many fleets of them, and prints one JSON object per fleet (campaign.h,
// tests/RELIABILITY.md). Progress goes to stderr. Exit codes: 0 no violation, 1 a violation or a failpoint that was
// never hit, 2 usage.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/fault.h"
#include "tests/faults/campaign.h"
#include "tests/faults/fleet_settings.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

struct Options {
  std::string bin = InBuild("bin");
  std::string scratch;
  std::string mutant;
  uint64_t seed = 1;
  Topology topology = Topology::kFlat;
  bool each_kind = false;
  int64_t fleets = 0;
  int64_t kills = 0;
  int64_t coordinator_kills = 0;
  int64_t client_kills = 0;
  double seconds = 0;
  int parallel = 6;
};

volatile std::sig_atomic_t interrupted = 0;
void OnSignal(int) { interrupted = 1; }

nlohmann::json ToJson(const std::map<Side, KillCounts>& counts) {
  nlohmann::json json;
  for (const Side side : kSides) {
    const auto of_side = counts.find(side);
    json[std::string(SideName(side))] = of_side == counts.end() ? KillCounts() : of_side->second;
  }
  return json;
}

nlohmann::json ToJson(const FleetResult& result) {
  nlohmann::json recovery;
  for (const Side side : kSides) {
    const auto times = result.recovery_ms.find(side);
    recovery[std::string(SideName(side))] = times == result.recovery_ms.end() ? std::vector<double>() : times->second;
  }
  return {{"seed", result.seed},
          {"settings", result.settings},
          {"rounds", result.rounds},
          {"checks", result.checks},
          {"lost", result.lost},
          {"doubled", result.doubled},
          {"kills", ToJson(result.kills)},
          {"missed", ToJson(result.missed)},
          {"recovery_ms", std::move(recovery)},
          {"problems", result.problems}};
}

// Fleets side by side, until enough has been killed.
class Campaign {
 public:
  explicit Campaign(const Options& options) : options_(options), next_seed_(options.seed), begin_(absl::Now()) {
    std::filesystem::create_directories(options_.scratch);
  }

  int Run() {
    std::vector<std::thread> threads;
    for (int slot = 0; slot < options_.parallel; ++slot) threads.emplace_back([this, slot] { RunSlot(slot); });
    for (std::thread& thread : threads) thread.join();
    std::error_code ignored;
    std::filesystem::remove(options_.scratch, ignored);  // when nothing was kept in there
    return Conclude();
  }

 private:
  // Fleets one after the other. Each slot has an address of its own, and so has each campaign on this machine.
  void RunSlot(int slot) {
    while (!Enough()) {
      const uint64_t seed = next_seed_.fetch_add(1);
      if (options_.fleets > 0 && seed >= options_.seed + options_.fleets) return;
      FleetOptions fleet;
      fleet.bin = options_.bin;
      fleet.mutant = options_.mutant;
      fleet.topology = options_.topology;
      fleet.takes_turns = options_.each_kind;
      fleet.seed = seed;
      fleet.directory = absl::StrCat(options_.scratch, "/seed-", seed);
      fleet.address = UniqueAddress(slot);
      std::filesystem::create_directories(fleet.directory);
      const FleetResult result = RunFleet(fleet, [this] { return Interrupted(); });
      Take(result, fleet.directory);
    }
  }

  bool Interrupted() const {
    const bool late = options_.seconds > 0 && absl::Now() - begin_ > absl::Seconds(options_.seconds);
    return late || violated_ || interrupted != 0;
  }

  bool Enough() const {
    if (Interrupted()) return true;
    return options_.fleets == 0 && KillsLeft() == 0;
  }

  // Returns how many processes are still to be killed, of all or of one side.
  int64_t KillsLeft() const {
    int64_t total = 0;
    for (const std::atomic<int64_t>& of_side : kills_) total += of_side;
    return std::max({options_.kills - total, options_.coordinator_kills - kills_[Index(Side::kCoordinator)],
                     options_.client_kills - kills_[Index(Side::kClient)], int64_t{0}});
  }

  static int Index(Side side) { return static_cast<int>(side); }

  void Take(const FleetResult& result, const std::string& directory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::printf("%s\n", ToJson(result).dump().c_str());
    std::fflush(stdout);
    for (const Side side : kSides) {
      kills_[Index(side)] += result.KillsOf(side);
      for (const auto& [where, count] : result.kills.at(side)) hit_.insert({side, where});
    }
    lost_ += result.lost;
    doubled_ += result.doubled;
    if (result.problems.empty()) {
      std::filesystem::remove_all(directory);
      ReportProgress();
      return;
    }
    violated_ = true;
    std::fprintf(stderr, "terse-campaign: seed %llu (%s): %s\n  the state directories and logs are in %s\n",
                 static_cast<unsigned long long>(result.seed), result.settings.c_str(),
                 absl::StrJoin(result.problems, "\n  ").c_str(), directory.c_str());
  }

  void ReportProgress() const {
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin_);
    std::vector<std::string> parts;
    int64_t total = 0;
    for (const Side side : kSides) {
      if (side == Side::kRelay && options_.topology == Topology::kFlat) continue;
      parts.push_back(absl::StrCat(kills_[Index(side)].load(), " ", SideName(side)));
      total += kills_[Index(side)];
    }
    absl::FPrintF(stderr, "campaign: %s kills in %.0f s, %.1f a second; lost %d, doubled %d%s\n",
                  absl::StrJoin(parts, ", "), seconds, total / seconds, lost_, doubled_,
                  options_.fleets > 0 ? "" : absl::StrFormat("; %d to go", KillsLeft()));
  }

  // A campaign that was not cut short has been everywhere.
  int Conclude() const {
    bool complete = !Interrupted();
    for (const FailpointPlan& plan : FailpointPlans()) {
      if (!ComesBy(plan, options_.topology)) continue;
      if (!complete || hit_.count({plan.side, std::string(plan.name)}) > 0) continue;
      std::fprintf(stderr,
                   "terse-campaign: no %s ever died at %s; see what it needs in tests/faults/failpoint_plan.cc\n",
                   std::string(SideName(plan.side)).c_str(), std::string(plan.name).c_str());
      violated_ = true;
    }
    return violated_ ? 1 : 0;
  }

  const Options options_;
  std::atomic<uint64_t> next_seed_;
  const absl::Time begin_;
  mutable std::atomic<bool> violated_{false};
  std::atomic<int64_t> kills_[std::size(kSides)] = {};
  std::mutex mutex_;
  std::set<std::pair<Side, std::string>> hit_;
  int64_t lost_ = 0;
  int64_t doubled_ = 0;
};

std::string DefaultScratch() {
  // The fleets live in memory where there is such a file system: the order of writes is the same, and the disk is
  // spared.
  const std::filesystem::path memory = "/dev/shm";
  std::error_code error;
  const auto space = std::filesystem::space(memory, error);
  const bool usable = !error && space.available > uint64_t{2} << 30;
  return ((usable ? memory : std::filesystem::temp_directory_path()) / absl::StrCat("terse-campaign-", getpid()))
      .string();
}

int ParseOptions(int argc, char** argv, Options* options) {
  CLI::App app("terse-campaign: kills coordinators, relays and clients and checks that no update is lost or doubled.");
  options->scratch = DefaultScratch();
  app.add_option("--coordinator-kills", options->coordinator_kills, "go on until so many coordinators were killed");
  app.add_option("--client-kills", options->client_kills, "and so many clients");
  app.add_option("--kills", options->kills, "and so many processes in all");
  app.add_option("--fleets", options->fleets, "instead: so many fleets, each through every failpoint");
  app.add_flag("--each-kind", options->each_kind,
               "instead: one fleet of each kind of settings; with --relays, all through every failpoint together");
  app.add_flag_callback(
      "--relays", [options] { options->topology = Topology::kTree; },
      "fleets with relays between the coordinator and its clients");
  app.add_option("--seconds", options->seconds, "end after so long, with what was done; 0: no limit");
  app.add_option("--seed", options->seed, "of the first fleet; the next ones count up")->capture_default_str();
  app.add_option("--parallel", options->parallel, "fleets side by side")
      ->check(CLI::Range(1, 200))
      ->capture_default_str();
  app.add_option("--scratch", options->scratch, "directory for the fleets; a failed one stays there")
      ->capture_default_str();
  app.add_option("--bin", options->bin, "directory of grid-coordinator, grid-relay and grid-client")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--mutant", options->mutant, "a known error for all processes, to see it caught")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kMutantNames), std::end(kMutantNames))));
  try {
    app.parse(argc, argv);
    if (options->each_kind) options->fleets = SettingsKinds(options->topology);
    if (options->fleets + options->kills + options->coordinator_kills + options->client_kills <= 0) {
      throw CLI::ValidationError("say how long",
                                 "with --kills, --coordinator-kills, --client-kills, --fleets or --each-kind");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return -1;
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) {
  terse::Options options;
  if (const int code = terse::ParseOptions(argc, argv, &options); code >= 0) return code;
  std::signal(SIGINT, terse::OnSignal);
  std::signal(SIGTERM, terse::OnSignal);
  return terse::Campaign(options).Run();
}
