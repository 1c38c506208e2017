#include "bench/paper/worker.h"

#include <sys/prctl.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/paper/thin_link.h"
#include "bench/stop_request.h"
#include "client/rpc/connection_loop.h"
#include "core/log/log.h"
#include "core/status.h"
#include "learning/local_trainer.h"
#include "learning/runtime.h"

namespace terse {
namespace {

struct WorkerOptions {
  std::string coordinator;
  std::string state;  // one folder a client below it
  std::string data;
  std::string device = "auto";
  int64_t first = 0;
  int64_t count = 1;
  int threads = 1;
  double link_bytes_per_second = 0;
};

std::string StateOf(const WorkerOptions& options, int64_t client) {
  return absl::StrCat(options.state, "/client-", client);
}

// Clients get their shards in the order in which they join, which is then the same in every rerun.
void AwaitPredecessor(const WorkerOptions& options, int64_t client) {
  if (client == 0) return;
  const std::string manifest = StateOf(options, client - 1) + "/MANIFEST";
  while (!StopRequested().load() && !std::filesystem::exists(manifest)) absl::SleepFor(absl::Milliseconds(20));
}

absl::StatusOr<int> ServeVirtualClients(const WorkerOptions& options) {
  // A worker without its fleet has nothing to do.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  StopOnSignals();
  std::signal(SIGPIPE, SIG_IGN);
  ConfigureLog({LogFormat::kHuman, {LogLevel::kWarn}});
  ConfigureThreads(options.threads);
  ConfigureMalloc();
  TERSE_ASSIGN_OR_RETURN(const TrainerFactory make_trainer, MakeTrainerFactory(options.data, options.device));
  std::vector<absl::Status> ended(options.count);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < options.count; ++i) {
    threads.emplace_back([&options, &make_trainer, i, status = &ended[i]] {
      const int64_t number = options.first + i;
      AwaitPredecessor(options, number);
      DaemonOptions client;
      client.coordinators = {options.coordinator};
      client.name = absl::StrCat("client-", number);
      client.state_directory = StateOf(options, number);
      if (options.link_bytes_per_second > 0) {
        client.through = [rate = options.link_bytes_per_second](CoordinatorLink* connection) {
          return std::make_unique<ThinLink>(connection, rate);
        };
      }
      *status = ServeCoordinator(client, make_trainer, &StopRequested());
      if (!status->ok()) StopRequested().store(true);  // the others, and those that await it, would wait for ever
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : ended) {
    if (!status.ok() && !absl::IsCancelled(status)) return status;
  }
  return 0;
}

}  // namespace

void AddWorkerCommand(CLI::App* app, Command* command) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* worker = app->add_subcommand("virtual-clients", "Serves several clients of a fleet");
  worker->group("");
  worker->add_option("--coordinator", options->coordinator, "host:port")->required()->check(DialAddress());
  worker->add_option("--state", options->state, "folder of the clients' states")->required();
  worker->add_option("--data", options->data, "directory of the data set");
  worker->add_option("--device", options->device, "auto, cpu or cuda");
  worker->add_option("--first", options->first, "number of the first client")->check(WholeNumber(0, 1000000));
  worker->add_option("--count", options->count, "clients")->check(WholeNumber(1, 10000));
  worker->add_option("--threads", options->threads, "threads of LibTorch")->check(WholeNumber(1, 1024));
  worker->add_option("--link", options->link_bytes_per_second, "bytes a second of each client's link; 0: any")
      ->check(Number(0));
  worker->callback([options, command] { *command = [options] { return ServeVirtualClients(*options); }; });
}

}  // namespace terse
