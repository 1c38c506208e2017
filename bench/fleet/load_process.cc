#include "bench/fleet/load_process.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "bench/fleet/load_session.h"
#include "client/rpc/backoff.h"
#include "core/file_system.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "learning/models/model_table.h"
#include "net/open_files.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "simulation/process_facts.h"

namespace terse {
namespace {

// Connections that are being made at a time: more would overflow the listener's backlog.
constexpr int64_t kConnecting = 64;
// The files of such a process beside its connections.
constexpr int64_t kOtherFiles = 64;

struct LoadProcessOptions {
  std::vector<std::string> servers;
  std::string run_file;
  std::string certificates;  // a TLS folder for each client, named as the client; empty: cleartext
  int64_t first = 0;
  int64_t count = 1;
};

// Ten thousand clients are to fit into little memory beside their connections.
static_assert(sizeof(LoadProtocol) + sizeof(LoadSession) < 2000);

// One line on standard output, whole, from whatever thread.
void Report(const std::string& line) {
  static absl::Mutex* const mutex = new absl::Mutex;
  absl::MutexLock lock(mutex);
  std::puts(line.c_str());
  std::fflush(stdout);
}

absl::Status CheckOpenFiles(int64_t clients) {
  TERSE_ASSIGN_OR_RETURN(const int64_t files, RaiseOpenFiles());
  if (files >= clients + kOtherFiles) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(clients, " connections need ", clients + kOtherFiles,
                                                   " open files, and this process may have ", files,
                                                   "; use more --processes, or raise the hard limit (ulimit -Hn)"));
}

// Brings the clients in, and back where they lose their connection. All but the callbacks is for one thread.
class LoadClients {
 public:
  LoadClients(const LoadProcessOptions& options, const LoadShare* share);
  // Ends the sessions that are left after an error.
  ~LoadClients();
  LoadClients(const LoadClients&) = delete;
  LoadClients& operator=(const LoadClients&) = delete;

  // Until the run is finished for every client. Final statuses of a client, with its name.
  absl::Status Serve();

 private:
  struct Client {
    std::unique_ptr<LoadProtocol> protocol;
    std::unique_ptr<LoadSession> session;
    bool welcomed = false;  // on this connection
  };
  struct News {
    int64_t client = 0;
    SessionNews news = SessionNews::kEnded;
  };

  absl::Status Connect(int64_t client);
  absl::Status OnNews(const News& news);
  absl::Status OnEnded(int64_t client);
  // Connects those whose time has come, as far as they may at once.
  absl::Status ConnectDue();
  absl::optional<News> Await() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !news_.empty(); }

  const LoadProcessOptions options_;
  const LoadShare* const share_;
  std::vector<Client> clients_;
  std::multimap<absl::Time, int64_t> due_;  // to be connected
  int64_t connecting_ = 0;
  int64_t finished_ = 0;
  Backoff backoff_;
  absl::Mutex mutex_;
  std::deque<News> news_ ABSL_GUARDED_BY(mutex_);
};

LoadClients::LoadClients(const LoadProcessOptions& options, const LoadShare* share)
    : options_(options), share_(share), clients_(options.count), backoff_(absl::Milliseconds(500), options.first) {
  for (int64_t i = 0; i < options.count; ++i) {
    clients_[i].protocol = std::make_unique<LoadProtocol>(share, LoadClientName(options.first + i), /*leads=*/i == 0);
  }
}

LoadClients::~LoadClients() {
  due_.clear();
  int64_t open = 0;
  for (Client& client : clients_) {
    if (client.session == nullptr) continue;
    client.session->Cancel();
    ++open;
  }
  while (open > 0) {
    if (const absl::optional<News> news = Await(); news.has_value()) open -= news->news == SessionNews::kEnded;
  }
}

absl::Status LoadClients::Serve() {
  // The leader alone at first: the others come with the model that it downloads.
  due_.emplace(absl::InfinitePast(), 0);
  bool all_come = false;
  while (finished_ < options_.count) {
    if (!all_come && share_->model->held().has_value()) {
      all_come = true;
      for (int64_t i = 1; i < options_.count; ++i) due_.emplace(absl::InfinitePast(), i);
    }
    TERSE_RETURN_IF_ERROR(ConnectDue());
    if (const absl::optional<News> news = Await(); news.has_value()) TERSE_RETURN_IF_ERROR(OnNews(*news));
  }
  return absl::OkStatus();
}

absl::Status LoadClients::ConnectDue() {
  while (!due_.empty() && due_.begin()->first <= absl::Now() && connecting_ < kConnecting) {
    const int64_t client = due_.begin()->second;
    due_.erase(due_.begin());
    TERSE_RETURN_IF_ERROR(Connect(client));
  }
  return absl::OkStatus();
}

absl::Status LoadClients::Connect(int64_t client) {
  LoadSession::Peer peer = {options_.servers[(options_.first + client) % options_.servers.size()], {}};
  LoadProtocol* const protocol = clients_[client].protocol.get();
  if (!options_.certificates.empty()) {
    peer.transport.tls_directory = FilePath(options_.certificates, protocol->name());
  }
  ++connecting_;
  ++share_->tally->connections;
  clients_[client].welcomed = false;
  TERSE_ASSIGN_OR_RETURN(clients_[client].session, LoadSession::Start(peer, protocol, [this, client](SessionNews news) {
                           absl::MutexLock lock(&mutex_);
                           news_.push_back({client, news});
                         }));
  return absl::OkStatus();
}

absl::optional<LoadClients::News> LoadClients::Await() {
  const bool may_connect = !due_.empty() && connecting_ < kConnecting;
  const absl::Time until = may_connect ? due_.begin()->first : absl::InfiniteFuture();
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithDeadline(absl::Condition(this, &LoadClients::HasNews), until);
  if (news_.empty()) return absl::nullopt;
  const News news = news_.front();
  news_.pop_front();
  return news;
}

absl::Status LoadClients::OnNews(const News& news) {
  Client& client = clients_[news.client];
  switch (news.news) {
    case SessionNews::kWelcomed:
      client.welcomed = true;
      --connecting_;
      return absl::OkStatus();
    case SessionNews::kDownload:
      client.session->Download();
      return absl::OkStatus();
    case SessionNews::kEnded:
      return OnEnded(news.client);
  }
  return absl::OkStatus();
}

absl::Status LoadClients::OnEnded(int64_t number) {
  Client& client = clients_[number];
  const absl::Status end = client.session->end();
  client.session.reset();
  if (!client.welcomed) --connecting_;
  if (end.ok()) {
    ++finished_;
    return absl::OkStatus();
  }
  if (!absl::IsUnavailable(end)) return Annotate(end, client.protocol->name());
  if (client.welcomed) backoff_.Reset();
  due_.emplace(absl::Now() + backoff_.Next(), number);
  return absl::OkStatus();
}

// Says each version once, when the first client has it.
class VersionReporter {
 public:
  void operator()(int64_t version) {
    int64_t newest = newest_.load();
    while (version > newest) {
      if (newest_.compare_exchange_weak(newest, version)) return Report(absl::StrCat("version ", version));
    }
  }

 private:
  std::atomic<int64_t> newest_{0};
};

std::string Counts(const LoadTally& tally, const SharedModel& model, int64_t memory_kib) {
  const nlohmann::json counts = {{"applied", tally.applied.load()},         {"not_applied", tally.not_applied.load()},
                                 {"resets", tally.resets.load()},           {"downloads", tally.downloads.load()},
                                 {"connections", tally.connections.load()}, {"refusals", tally.refusals.load()},
                                 {"models_checked", model.applied()},       {"memory_kib", memory_kib}};
  return counts.dump();
}

absl::Status ServeLoad(const LoadProcessOptions& options) {
  TERSE_RETURN_IF_ERROR(CheckOpenFiles(options.count));
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(options.run_file));
  TERSE_ASSIGN_OR_RETURN(const RunConfig run, ToCore(config));
  TERSE_ASSIGN_OR_RETURN(const Layout layout, ModelLayout(run.model));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SharedModel> model, SharedModel::Make(run, layout));
  TERSE_ASSIGN_OR_RETURN(const UpdatePool pool, UpdatePool::Prepare(model->codec(), /*seed=*/options.first + 1));
  LoadTally tally;
  VersionReporter reporter;
  const LoadShare share = {layout.Hash(), model.get(), &pool, &tally, std::ref(reporter)};
  LoadClients clients(options, &share);
  TERSE_ASSIGN_OR_RETURN(const ProcessMemory before, ReadProcessMemory("self"));
  Report("ready");
  std::string go;
  if (!std::getline(std::cin, go)) return absl::CancelledError("nobody wants the load any more");
  TERSE_RETURN_IF_ERROR(clients.Serve());
  TERSE_ASSIGN_OR_RETURN(const ProcessMemory after, ReadProcessMemory("self"));
  Report(absl::StrCat("done ", Counts(tally, *model, after.peak_kib - before.resident_kib)));
  return absl::OkStatus();
}

int RunLoadProcess(const LoadProcessOptions& options) {
  // A process of a load without its load has nothing to do.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  const absl::Status served = ServeLoad(options);
  if (served.ok()) return 0;
  Report(absl::StrCat("error ", PlainText(served.message())));
  return 1;
}

}  // namespace

std::string LoadClientName(int64_t number) { return absl::StrCat("client-", number); }

void AddLoadProcessCommand(CLI::App* app, Command* command) {
  auto options = std::make_shared<LoadProcessOptions>();
  CLI::App* sub = app->add_subcommand(kLoadProcessCommand, "Serves several clients of a load");
  sub->group("");
  sub->add_option("--servers", options->servers, "host:port; client N goes to number N of them, round and round")
      ->required()
      ->delimiter(',')
      ->check(DialAddress());
  sub->add_option("--run-file", options->run_file, "that the coordinator serves")->required()->check(ExistingFile());
  sub->add_option("--certificates", options->certificates, "folder with a TLS folder for each client");
  sub->add_option("--first", options->first, "number of the first client")->check(WholeNumber(0, 1'000'000));
  sub->add_option("--count", options->count, "clients")->check(WholeNumber(1, 1'000'000));
  sub->callback([options, command] { *command = [options] { return RunLoadProcess(*options); }; });
}

}  // namespace terse
