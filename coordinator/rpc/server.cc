#include "coordinator/rpc/server.h"

#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compression/codec_table.h"
#include "coordinator/rpc/fleet_service.h"
#include "core/file_io.h"
#include "core/status.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "proto/channel_settings.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace terse {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int64_t kQueueBytesFloor = int64_t{64} << 20;

// Signals are taken by a thread that waits for them, so that handling one may lock and log.
class SignalWaiter {
 public:
  explicit SignalWaiter(std::function<void()> on_signal) {
    sigemptyset(&signals_);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this, on_signal = std::move(on_signal)] {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (signal != SIGUSR1) on_signal();
    });
  }
  ~SignalWaiter() {
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

 private:
  sigset_t signals_;
  std::thread thread_;
};

// A listening gRPC server of one service.
struct Listener {
  std::unique_ptr<grpc::Server> server;
  std::string address;  // with the port that was chosen
};

absl::StatusOr<Listener> Listen(const std::string& address, const std::string& option, grpc::Service* service) {
  grpc::ServerBuilder builder;
  SetFleetServerOptions(&builder);
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service);
  Listener listener;
  listener.server = builder.BuildAndStart();
  if (listener.server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address,
                     ": the port is in use or the address is not this machine's; choose another "
                     "with ",
                     option));
  }
  listener.address = absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
  return listener;
}

// The run file's configuration, or the stored run's, or the run file's once it is known to be the same.
absl::StatusOr<v1::RunConfig> ChooseConfig(const CoordinatorOptions& options, const absl::optional<RunRecord>& stored) {
  v1::RunConfig kept;
  if (stored.has_value() && !kept.ParseFromString(stored->config)) {
    return absl::DataLossError(
        absl::StrCat(options.state_directory, " holds a run whose configuration cannot be read"));
  }
  if (options.run_file.empty()) {
    if (stored.has_value()) return kept;
    return absl::InvalidArgumentError(
        absl::StrCat(options.state_directory, " holds no run yet; give one with --run FILE"));
  }
  TERSE_ASSIGN_OR_RETURN(v1::RunConfig wanted, LoadRunConfig(options.run_file));
  if (stored.has_value() && wanted.SerializeAsString() != stored->config) {
    return absl::FailedPreconditionError(absl::StrCat(options.state_directory, " holds run '", kept.name(),
                                                      "' with other settings than ", options.run_file,
                                                      "; resume it without --run, or choose another --state"));
  }
  return wanted;
}

absl::Status CreateRun(const RunConfig& config, const v1::RunConfig& wire, const LearningHooks& hooks, Clock* clock,
                       RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<float> weights, hooks.initial_weights(config));
  RunRecord record;
  record.name = config.name;
  record.lineage = Id128::Random();
  record.config = wire.SerializeAsString();
  record.parameters = weights.size();
  record.created_us = clock->NowMicros();
  TERSE_RETURN_IF_ERROR(store->CreateRun(record, weights));
  return store->AddEvent({record.created_us, "run_created", 0, -1, config.name});
}

absl::Status WriteReadyFile(const std::string& path, const Listener& fleet, const Listener& admin) {
  if (path.empty()) return absl::OkStatus();
  const std::string json = absl::StrCat("{\"listen\": \"", fleet.address, "\", \"admin\": \"", admin.address, "\"}\n");
  return ReplaceFile(path, {json});
}

void LogEvent(const EventRecord& event) {
  spdlog::info("{}{}{}: {}", event.kind, event.round > 0 ? absl::StrCat(" round ", event.round) : "",
               event.client >= 0 ? absl::StrCat(" client ", event.client) : "", event.detail);
}

// Everything between an open store and the end of the process, in the order in which it must go away again.
absl::Status Serve(const CoordinatorOptions& options, const LearningHooks& hooks, RunStore* store) {
  SystemClock clock;
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> stored, store->Run());
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig wire, ChooseConfig(options, stored));
  TERSE_ASSIGN_OR_RETURN(const RunConfig config, ToCore(wire));
  TERSE_ASSIGN_OR_RETURN(const Layout layout, hooks.layout(config));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeCodec(config.codec, layout));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Evaluator> evaluator, hooks.evaluator(config, options.data_directory));
  if (!stored.has_value()) TERSE_RETURN_IF_ERROR(CreateRun(config, wire, hooks, &clock, store));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, store->Run());

  EventLoop loop(&clock);
  SignalWaiter signals([&loop] { loop.Quit(); });
  BackgroundWorker background(evaluator.get(), store, config.checkpoint_keep,
                              [&loop](Event event) { loop.Post(std::move(event)); });
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                         Engine::Resume({config, codec.get(), store, &background, &clock, LogEvent}));

  FleetService fleet_service({engine.get(), &loop, store, wire, record->lineage, codec->MaxMessageBytes(),
                              kQueueBytesFloor + 8 * layout.size() * int64_t{sizeof(float)}});
  AdminService admin_service({engine.get(), &loop, store, wire,
                              [&hooks, &config](v1::ExportRequest::Format format, absl::Span<const float> weights) {
                                return hooks.exporter(config, format, weights);
                              },
                              [&loop] { loop.Quit(); }});
  TERSE_ASSIGN_OR_RETURN(const Listener fleet, Listen(options.listen, "--listen", &fleet_service));
  TERSE_ASSIGN_OR_RETURN(const Listener admin, Listen(options.admin, "--admin", &admin_service));
  TERSE_RETURN_IF_ERROR(WriteReadyFile(options.ready_file, fleet, admin));
  spdlog::info("run '{}' ({} parameters, codec {}) at version {}; clients: {}, operators: {}", config.name,
               layout.size(), config.codec.name, engine->View().head.version, fleet.address, admin.address);

  absl::Status status = loop.Run(engine.get());
  if (status.ok()) status = engine->Close();
  admin_service.Close();
  const auto deadline = absl::ToChronoTime(absl::Now() + absl::Seconds(2));
  fleet.server->Shutdown(deadline);
  admin.server->Shutdown(deadline);
  fleet.server->Wait();
  admin.server->Wait();
  return status;
}

}  // namespace

int ParseCoordinatorOptions(int argc, char** argv, CoordinatorOptions* options) {
  CLI::App app("terse-coordinator: runs the rounds of one federated training run.");
  app.add_option("--run", options->run_file, "TOML file of the run; needed once, later starts resume from --state")
      ->check(CLI::ExistingFile);
  app.add_option("--state", options->state_directory, "directory that holds the run")->required();
  app.add_option("--data", options->data_directory,
                 "directory of the data set for evaluation; without it, an embedded one")
      ->check(CLI::ExistingDirectory);
  app.add_option("--listen", options->listen, "address for clients; port 0 takes a free one")->capture_default_str();
  app.add_option("--admin", options->admin, "address for operators")->capture_default_str();
  app.add_option("--ready-file", options->ready_file, "JSON file to write once both addresses are served");
  app.add_option("--log-level", options->log_level, "how much to log")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return -1;
}

int RunCoordinator(const CoordinatorOptions& options, const LearningHooks& hooks) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("coordinator"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ coordinator: %v");
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  // What gRPC would print about a busy port is in our own message.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  std::signal(SIGPIPE, SIG_IGN);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  absl::Status status;
  {
    absl::StatusOr<std::unique_ptr<RunStore>> store = RunStore::Open(options.state_directory);
    status = store.ok() ? Serve(options, hooks, store->get()) : store.status();
  }
  if (status.ok()) {
    spdlog::info("stopped; the run in {} is whole", options.state_directory);
    return kExitOk;
  }
  spdlog::error("{}", std::string(status.message()));
  return kExitFailed;
}

}  // namespace terse
