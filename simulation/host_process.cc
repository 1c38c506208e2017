#include "simulation/host_process.h"

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/rpc/connection_loop.h"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/log/log.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "net/open_files.h"
#include "security/connection_failure.h"
#include "simulation/client_host.h"
#include "simulation/process_facts.h"
#include "trainer/external_trainer.h"
#include "trainer/trainer_source.h"

namespace terse {
namespace {

// How often a process says how many of its clients have joined.
constexpr int64_t kJoinedEach = 50;
// The files of a process beside those of its clients, which have a connection and a lock each.
constexpr int64_t kOtherFiles = 64;
constexpr int64_t kFilesEach = 2;

std::atomic<bool> stop_requested{false};

struct HostOptions {
  ClientHost::Options clients;
  std::string data;
  std::string device = "auto";
  int threads = 1;
  TrainerOptions trainer;
};

// One line on standard output.
void Report(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

absl::Status CheckOpenFiles(int64_t clients) {
  TERSE_ASSIGN_OR_RETURN(const int64_t files, RaiseOpenFiles());
  const int64_t needed = kFilesEach * clients + kOtherFiles;
  if (files >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(clients, " clients in one process need ", needed,
                                                   " open files, and it may have ", files,
                                                   "; give more --processes, or raise the hard limit (ulimit -Hn)"));
}

// One trainer of the user's own, which trains for all clients of this process.
class OwnTrainer {
 public:
  absl::StatusOr<TrainerFactory> Make(const TrainerOptions& options) {
    int socket = options.inherited;
    if (!options.command.empty()) {
      TERSE_ASSIGN_OR_RETURN(connection_, TrainerCommand(options.command)());
      socket = connection_.socket.fd();
    }
    ExternalTrainerOptions trainer;
    trainer.source = InheritedTrainer(socket);
    trainer.seconds = options.seconds;
    trainer.stop = [] { return stop_requested.load(); };
    return ExternalTrainerFactory(std::move(trainer));
  }

 private:
  TrainerConnection connection_ = {OwnedFile(), nullptr};
};

absl::Status Serve(const HostOptions& options) {
  TERSE_RETURN_IF_ERROR(CheckOpenFiles(options.clients.count));
  ClientHost host(options.clients);
  std::string line;
  if (!std::getline(std::cin, line)) return absl::CancelledError("nobody wants the clients any more");
  int64_t joined = 0;
  TERSE_RETURN_IF_ERROR(host.Join([&joined, count = options.clients.count] {
    if (++joined % kJoinedEach == 0 || joined == count) Report(absl::StrCat("joined ", joined));
  }));
  TERSE_RETURN_IF_ERROR(host.Serve());
  TERSE_ASSIGN_OR_RETURN(const ProcessMemory memory, ReadProcessMemory("self"));
  Report(absl::StrCat("done ", memory.peak_kib));
  return absl::OkStatus();
}

}  // namespace

int RunHostProcess(int argc, char** argv, const TrainerMaking& make_trainers) {
  HostOptions options;
  CLI::App app("Serves several clients of a simulation");
  app.name(kHostCommand);
  app.add_option("--coordinators", options.clients.coordinators)->required()->delimiter(',')->check(DialAddress());
  app.add_option("--fleet", options.clients.fleet)->required()->check(WholeNumber(1, 100'000));
  app.add_option("--run", options.clients.run)->required();
  app.add_option("--state", options.clients.directory)->required();
  app.add_option("--first", options.clients.first)->check(WholeNumber(0, 100'000));
  app.add_option("--count", options.clients.count)->check(WholeNumber(1, 100'000));
  app.add_option("--data", options.data);
  app.add_option("--device", options.device);
  app.add_option("--trainer", options.trainer.command);
  app.add_option("--trainer-fd", options.trainer.inherited);
  app.add_option("--trainer-seconds", options.trainer.seconds);
  app.add_option("--threads", options.threads)->check(WholeNumber(1, 1024));
  if (const absl::optional<int> code = ReadCommandLine(app, argc - 1, argv + 1); code.has_value()) return *code;
  // A process of clients without its simulation has nothing to do. Ctrl-C is for that one, which lets a round end.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::signal(SIGTERM, [](int) { stop_requested.store(true); });
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  QuietGrpc();
  ConfigureLog({LogFormat::kHuman, {LogLevel::kWarn}});
  options.clients.stopping = &stop_requested;
  OwnTrainer own;
  absl::StatusOr<TrainerFactory> trainers =
      options.trainer.any() ? own.Make(options.trainer) : make_trainers(options.data, options.device, options.threads);
  absl::Status served = trainers.status();
  if (served.ok()) {
    options.clients.make_trainer = *std::move(trainers);
    served = Serve(options);
  }
  if (served.ok() || absl::IsCancelled(served)) return 0;
  Report(absl::StrCat("error ", PlainText(served.message())));
  return 1;
}

}  // namespace terse
