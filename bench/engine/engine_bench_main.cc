// terse-engine-bench: the cost of an event of the coordinator's engine, by the number of sessions.
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/engine/engine_load.h"
#include "bench/measure.h"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/lock_order.h"
#include "core/status.h"
#include "core/version.h"

namespace {

std::atomic<int64_t> syncs{0};

}  // namespace

// Stand in for the C library's in the whole program, SQLite included.
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace terse {
namespace {

struct BenchOptions {
  EngineLoadOptions load;
  std::vector<int64_t> sessions = {100, 1000, 10'000, 100'000};
  double limit = 0;
  bool json = false;
};

// The middle of the rounds, in each figure by itself.
EngineSpan MedianRound(const std::vector<EngineSpan>& rounds) {
  const auto middle = [&rounds](auto figure) {
    std::vector<double> values;
    for (const EngineSpan& round : rounds) values.push_back(static_cast<double>(figure(round)));
    return Median(values);
  };
  EngineSpan median;
  median.events = static_cast<int64_t>(middle([](const EngineSpan& span) { return span.events; }));
  median.batches = static_cast<int64_t>(middle([](const EngineSpan& span) { return span.batches; }));
  median.syncs = static_cast<int64_t>(middle([](const EngineSpan& span) { return span.syncs; }));
  median.seconds = middle([](const EngineSpan& span) { return span.seconds; });
  median.longest_seconds = middle([](const EngineSpan& span) { return span.longest_seconds; });
  median.processor_seconds = middle([](const EngineSpan& span) { return span.processor_seconds; });
  return median;
}

struct Row {
  int64_t sessions = 0;
  EngineFigures figures;
  EngineSpan round;
  double ratio = 1;  // of an event's processor time to that of the first row
};

// In a new directory, which goes away.
absl::StatusOr<Row> Measure(const BenchOptions& options, int64_t sessions) {
  EngineLoadOptions load = options.load;
  load.sessions = sessions;
  load.sync_count = [] { return syncs.load(); };
  load.directory = options.load.directory + "/terse-engine-XXXXXX";
  if (mkdtemp(&load.directory[0]) == nullptr) return absl::ErrnoToStatus(errno, load.directory);
  absl::StatusOr<EngineFigures> figures = RunEngineLoad(load);
  std::filesystem::remove_all(load.directory);
  if (!figures.ok()) return Annotate(figures.status(), absl::StrFormat("%d sessions", sessions));
  const EngineSpan round = MedianRound(figures->rounds);
  return Row{sessions, *std::move(figures), round};
}

void PrintHead(const EngineLoadOptions& load) {
  std::printf("%d inputs, density %g, %d rounds; store in %s\n", static_cast<int>(load.inputs), load.density,
              static_cast<int>(load.rounds), load.directory.c_str());
  std::printf("%9s %11s %10s %11s %10s %14s %8s %13s %11s %6s %12s\n", "sessions", "joining, s", "us, event",
              "round, ms", "us, event", "events, round", "batches", "longest, ms", "leaving, us", "syncs",
              "KiB, session");
}

void PrintRow(const Row& row) {
  const EngineFigures& figures = row.figures;
  std::printf("%s", absl::StrFormat("%9d %11.3f %10.2f %11.2f %10.2f %14d %8d %13.2f %11.2f %6d %12.2f   x%.2f\n",
                                    row.sessions, figures.joining.seconds, figures.joining.us_an_event(),
                                    1e3 * row.round.seconds, row.round.us_an_event(), row.round.events,
                                    row.round.batches, 1e3 * row.round.longest_seconds, figures.leaving.us_an_event(),
                                    row.round.syncs, figures.kib_a_session(row.sessions), row.ratio)
                        .c_str());
  std::fflush(stdout);
}

nlohmann::ordered_json ToJson(const EngineSpan& span) {
  return {
      {"events", span.events},   {"batches", span.batches},           {"syncs", span.syncs},
      {"seconds", span.seconds}, {"us_an_event", span.us_an_event()}, {"longest_batch_seconds", span.longest_seconds}};
}

nlohmann::ordered_json ToJson(const Row& row) {
  const EngineFigures& figures = row.figures;
  return {{"sessions", row.sessions},
          {"parameters", figures.parameters},
          {"joining", ToJson(figures.joining)},
          {"round", ToJson(row.round)},
          {"leaving", ToJson(figures.leaving)},
          {"kib_a_session", figures.kib_a_session(row.sessions)},
          {"database_bytes", figures.database_bytes},
          {"event_ratio", row.ratio}};
}

absl::StatusOr<int> Run(const BenchOptions& options) {
  auto json = nlohmann::ordered_json::array();
  double first_us = 0;
  int code = 0;
  if (!options.json) PrintHead(options.load);
  for (const int64_t sessions : options.sessions) {
    TERSE_ASSIGN_OR_RETURN(Row row, Measure(options, sessions));
    if (first_us == 0) first_us = row.round.us_an_event();
    row.ratio = row.round.us_an_event() / first_us;
    if (options.limit > 0 && row.ratio > options.limit) code = 1;
    if (options.json) {
      json.push_back(ToJson(row));
    } else {
      PrintRow(row);
    }
  }
  if (options.json) std::printf("%s\n", json.dump(2).c_str());
  return code;
}

void AddOptions(CLI::App* app, BenchOptions* options) {
  EngineLoadOptions& load = options->load;
  load.directory = std::filesystem::temp_directory_path().string();
  app->add_option("--sessions", options->sessions, "Numbers of sessions, one run each")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str();
  app->add_option("--rounds", load.rounds, "Rounds of each run")->check(WholeNumber(1, 10'000))->capture_default_str();
  app->add_option("--inputs", load.inputs, "Of the perceptron: it has 100 numbers for each, and 1,110 more")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str();
  app->add_option("--density", load.density, "Of the updates, which are SBC's")
      ->check(Number(1e-9, 1))
      ->capture_default_str();
  app->add_option("--directory", load.directory, "Where the stores are made, and removed again")
      ->check(ExistingFolder())
      ->capture_default_str();
  app->add_option("--limit", options->limit, "Exit with 1 when an event takes more times that of the first; 0: never")
      ->check(Number(0))
      ->capture_default_str();
  app->add_flag("--json", options->json, "Figures as JSON");
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) {
  terse::SkipLockOrderChecks();
  CLI::App app(
      "Plays runs of many scripted sessions through the coordinator's engine and its store, without connections");
  app.name("terse-engine-bench");
  app.set_version_flag("--version", terse::kVersion);
  app.footer("Exit codes: 0 ok, 1 a run went wrong or the limit was missed, 2 wrong usage.");
  terse::BenchOptions options;
  terse::AddOptions(&app, &options);
  if (const absl::optional<int> code = terse::ReadCommandLine(app, argc, argv); code.has_value()) return *code;
  const absl::StatusOr<int> code = terse::Run(options);
  if (code.ok()) return *code;
  std::fprintf(stderr, "terse-engine-bench: %s\n", std::string(code.status().message()).c_str());
  return 1;
}
