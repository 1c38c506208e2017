// terse-failover-campaign: kills and pauses the coordinator that serves, takes PostgreSQL servers away for a while, and
// loses others that have a synchronous standby, in one fleet after the other (failover_fleet.h, tests/RELIABILITY.md).
// Exit codes: 0 all books are whole, 1 they are not, or a fleet did not come back, 2 usage.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/failover_fleet.h"
#include "tests/e2e/fleet_conservation.h"
#include "tests/testing/postgres_pair.h"
#include "tests/testing/postgres_server.h"

namespace terse {
namespace {

using Fault = FailoverFleet::Fault;

// The faults of one fleet at most. Between two of them it commits rounds without any.
constexpr int kFaultsOfAFleet = 10;

struct Options {
  int kills = 4;
  int stops = 2;
  int standby_losses = 2;
  int outages = 1;
  double outage_seconds = 5;
  int parallel = 2;
  bool json = false;
};

// Times from faults of one kind to the next committed round.
class Times {
 public:
  void Add(absl::Duration time) { seconds_.push_back(absl::ToDoubleSeconds(time)); }
  void Add(const Times& others) { seconds_.insert(seconds_.end(), others.seconds_.begin(), others.seconds_.end()); }
  int64_t count() const { return static_cast<int64_t>(seconds_.size()); }
  // The least of these times that so large a part of them does not exceed; 0 of none.
  double Quantile(double part) const {
    if (seconds_.empty()) return 0;
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    const auto at = static_cast<size_t>(part * static_cast<double>(sorted.size()) + 0.999999);
    return sorted[std::min(std::max<size_t>(at, 1), sorted.size()) - 1];
  }

 private:
  std::vector<double> seconds_;
};

// What happened so far, in one fleet or in all.
struct Totals {
  Times kills, stops, standby_losses, outages;
  int64_t fleets = 0;
  int64_t whole_fleets = 0;  // whose books are whole
  int64_t rounds_lost = 0;   // that were committed, and a new primary does not have

  void Add(const Totals& other) {
    kills.Add(other.kills);
    stops.Add(other.stops);
    standby_losses.Add(other.standby_losses);
    outages.Add(other.outages);
    fleets += other.fleets;
    whole_fleets += other.whole_fleets;
    rounds_lost += other.rounds_lost;
  }
};

bool Failed() { return testing::Test::HasFailure(); }

void FinishFleet(FailoverFleet* fleet, Totals* totals) {
  std::string run_state;
  ASSERT_NO_FATAL_FAILURE(fleet->Finish(&run_state));
  ASSERT_NO_FATAL_FAILURE(fleet->ExpectWholeBooks(run_state));
  totals->whole_fleets += Failed() ? 0 : 1;
}

// Faults of both kinds take turns, the more frequent one more often.
std::vector<Fault> PlanFaults(int kills, int stops) {
  std::vector<Fault> faults;
  const int all = kills + stops;
  for (int i = 0; i < all; ++i) {
    const bool is_stop = int64_t{i + 1} * stops / all > int64_t{i} * stops / all;
    faults.push_back(is_stop ? Fault::kStop : Fault::kKill);
  }
  return faults;
}

void RunFleetOfFaults(const std::vector<Fault>& faults, Totals* totals) {
  ++totals->fleets;
  PostgresServer server;
  FailoverFleet fleet(server.address(), kRounds);
  ASSERT_NO_FATAL_FAILURE(fleet.Start());
  const auto count = static_cast<int64_t>(faults.size());
  for (int64_t i = 0; i < count; ++i) {
    absl::Duration until_next;
    ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds((i + 1) * kRounds / (count + 1)));
    ASSERT_NO_FATAL_FAILURE(fleet.EndHolder(faults[i], &until_next));
    (faults[i] == Fault::kStop ? totals->stops : totals->kills).Add(until_next);
  }
  FinishFleet(&fleet, totals);
}

void RunFleetOfLosses(int64_t losses, Totals* totals) {
  ++totals->fleets;
  PostgresPair pair(PostgresPair::Replication::kSynchronous);
  FailoverFleet fleet(pair.address(), kRounds);
  ASSERT_NO_FATAL_FAILURE(fleet.Start());
  for (int64_t i = 0; i < losses; ++i) {
    absl::Duration until_next;
    int64_t lost = 0;
    ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds((i + 1) * kRounds / (losses + 1)));
    ASSERT_NO_FATAL_FAILURE(fleet.LosePrimary(&pair, &until_next, &lost));
    EXPECT_EQ(lost, 0);
    totals->rounds_lost += lost;
    totals->standby_losses.Add(until_next);
    pair.AddStandby();
  }
  FinishFleet(&fleet, totals);
}

void RunFleetOfOutages(int64_t outages, absl::Duration length, Totals* totals) {
  ++totals->fleets;
  PostgresServer server;
  FailoverFleet fleet(server.address(), kRounds);
  ASSERT_NO_FATAL_FAILURE(fleet.Start());
  for (int64_t i = 0; i < outages; ++i) {
    absl::Duration until_next;
    ASSERT_NO_FATAL_FAILURE(fleet.WaitForRounds((i + 1) * kRounds / (outages + 1)));
    ASSERT_NO_FATAL_FAILURE(fleet.LoseServerFor(length, &server, &until_next));
    totals->outages.Add(until_next);
  }
  FinishFleet(&fleet, totals);
}

void Report(const Totals& totals) {
  std::fprintf(stderr,
               "%lld kills, %lld stops, %lld lost primaries, %lld outages; %lld of %lld fleets with whole books\n",
               static_cast<long long>(totals.kills.count()), static_cast<long long>(totals.stops.count()),
               static_cast<long long>(totals.standby_losses.count()), static_cast<long long>(totals.outages.count()),
               static_cast<long long>(totals.whole_fleets), static_cast<long long>(totals.fleets));
}

// The fleets that are to run, each with at most kFaultsOfAFleet faults.
std::deque<std::function<void(Totals*)>> PlanFleets(const Options& options) {
  std::deque<std::function<void(Totals*)>> fleets;
  const std::vector<Fault> faults = PlanFaults(options.kills, options.stops);
  for (size_t next = 0; next < faults.size(); next += kFaultsOfAFleet) {
    const size_t end = std::min(next + kFaultsOfAFleet, faults.size());
    fleets.push_back([part = std::vector<Fault>(faults.begin() + next, faults.begin() + end)](Totals* totals) {
      RunFleetOfFaults(part, totals);
    });
  }
  for (int left = options.standby_losses; left > 0; left -= kFaultsOfAFleet) {
    fleets.push_back([losses = std::min(left, kFaultsOfAFleet)](Totals* totals) { RunFleetOfLosses(losses, totals); });
  }
  for (int left = options.outages; left > 0; left -= kFaultsOfAFleet) {
    fleets.push_back([outages = std::min(left, kFaultsOfAFleet), length = absl::Seconds(options.outage_seconds)](
                         Totals* totals) { RunFleetOfOutages(outages, length, totals); });
  }
  return fleets;
}

// Fleets side by side, until all have run or one has failed.
Totals RunAll(const Options& options) {
  std::mutex mutex;
  Totals totals;
  std::deque<std::function<void(Totals*)>> fleets = PlanFleets(options);
  const auto run = [&] {
    std::unique_lock<std::mutex> lock(mutex);
    while (!fleets.empty() && !Failed()) {
      const std::function<void(Totals*)> fleet = std::move(fleets.front());
      fleets.pop_front();
      Totals own;
      lock.unlock();
      fleet(&own);
      lock.lock();
      totals.Add(own);
      Report(totals);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < options.parallel; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
  return totals;
}

nlohmann::json ToJson(const Times& times) {
  return {{"count", times.count()},
          {"p50_seconds", times.Quantile(0.5)},
          {"p99_seconds", times.Quantile(0.99)},
          {"max_seconds", times.Quantile(1)}};
}

void PrintLine(const char* kind, const Times& times) {
  if (times.count() == 0) return;
  std::printf("%-15s %5lld   p50 %6.2f s   p99 %6.2f s   max %6.2f s\n", kind, static_cast<long long>(times.count()),
              times.Quantile(0.5), times.Quantile(0.99), times.Quantile(1));
}

void Print(const Totals& totals, bool json) {
  if (json) {
    const nlohmann::json line = {{"fleets", totals.fleets},
                                 {"whole_fleets", totals.whole_fleets},
                                 {"rounds", totals.whole_fleets * kRounds},
                                 {"rounds_lost", totals.rounds_lost},
                                 {"kills", ToJson(totals.kills)},
                                 {"stops", ToJson(totals.stops)},
                                 {"standby_losses", ToJson(totals.standby_losses)},
                                 {"outages", ToJson(totals.outages)}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("The time from a fault, or from an outage's end, to the next committed round:\n");
  PrintLine("kills", totals.kills);
  PrintLine("stops", totals.stops);
  PrintLine("lost primaries", totals.standby_losses);
  PrintLine("outages", totals.outages);
  std::printf("%lld of %lld fleets have whole books, in %lld rounds: no update is lost and none counts twice there.\n",
              static_cast<long long>(totals.whole_fleets), static_cast<long long>(totals.fleets),
              static_cast<long long>(totals.whole_fleets) * kRounds);
}

int Main(int argc, char** argv) {
  testing::InitGoogleTest();
  CLI::App app(
      "Kills and pauses coordinators, and loses PostgreSQL servers, for good or for a while, under load, and checks "
      "the "
      "fleets' books.",
      "terse-failover-campaign");
  Options options;
  app.add_option("--kills", options.kills, "how often the coordinator that serves is killed (SIGKILL)")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--stops", options.stops, "how often it is paused (SIGSTOP), and woken up when another one serves")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--standby-losses", options.standby_losses,
                 "how often the PostgreSQL server is lost and its synchronous standby takes its place")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--outages", options.outages, "how often the PostgreSQL server is away for a while")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--outage-seconds", options.outage_seconds, "how long each time")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--parallel", options.parallel, "fleets side by side")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--json", options.json, "print the figures as one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Totals totals = RunAll(options);
  Print(totals, options.json);
  return Failed() ? 1 : 0;
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) { return terse::Main(argc, argv); }
