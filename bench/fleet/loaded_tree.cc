#include "bench/fleet/loaded_tree.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/fleet/load_certificates.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr absl::Duration kAdminPatience = absl::Minutes(5);
constexpr absl::Duration kJoinPatience = absl::Seconds(60);

// Waits until the relay has the run of the coordinator above: until then it knows none.
absl::Status AwaitRun(LoadedTree::Server* relay) {
  const absl::Time deadline = absl::Now() + kJoinPatience;
  while (true) {
    TERSE_RETURN_IF_ERROR(relay->process->CheckRuns());
    const absl::Status status = relay->admin.GetStatus().status();
    if (status.ok()) return status;
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(relay->name, " has not joined the run: ", status.message()));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedTree>> LoadedTree::Start(const Options& options) {
  auto tree = absl::WrapUnique(new LoadedTree);
  LoadedServer::Options coordinator;
  coordinator.name = kLoadCoordinatorName;
  coordinator.program = "terse-coordinator";
  coordinator.arguments = {"--run-file", options.run.run_file};
  if (!options.run.data.empty()) {
    coordinator.arguments.insert(coordinator.arguments.end(), {"--data", options.run.data});
  }
  coordinator.directory = options.directory;
  coordinator.clients = options.relays > 0 ? options.relays : options.clients;
  TERSE_RETURN_IF_ERROR(tree->StartServer(coordinator, options.certificates));
  TERSE_RETURN_IF_ERROR(tree->coordinator().admin.GetStatus().status());
  for (int64_t i = 0; i < options.relays; ++i) TERSE_RETURN_IF_ERROR(tree->StartRelay(options, i));
  for (Server& relay : tree->relays()) TERSE_RETURN_IF_ERROR(AwaitRun(&relay));
  return tree;
}

absl::Status LoadedTree::StartRelay(const Options& options, int64_t number) {
  LoadedServer::Options relay;
  relay.name = LoadRelayName(number);
  relay.program = "terse-relay";
  relay.directory = options.directory;
  relay.clients = (options.clients - number + options.relays - 1) / options.relays;
  const std::string clients = absl::StrCat(relay.clients);
  // All of them are the quorum: a relay that is ordered a round while half of its clients still join would begin it.
  relay.arguments = {"--upstream", coordinator().process->address(),
                     "--name",     relay.name,
                     "--clients",  clients,
                     "--quorum",   clients,
                     "--mode",     options.relay_mode};
  return StartServer(relay, options.certificates);
}

absl::Status LoadedTree::StartServer(LoadedServer::Options options, const std::string& certificates) {
  if (!certificates.empty()) options.tls_folder = ServerTlsFolder(certificates, options.name);
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<LoadedServer> process, LoadedServer::Start(options));
  TERSE_ASSIGN_OR_RETURN(AdminClient admin, AdminClient::Make({process->admin(), {}}, kAdminPatience));
  servers_.push_back({options.name, options.clients, std::move(process), std::move(admin)});
  return absl::OkStatus();
}

absl::StatusOr<LoadedTree::Sample> LoadedTree::Take() {
  Sample sample;
  TERSE_ASSIGN_OR_RETURN(sample.coordinator, coordinator().process->Take());
  for (Server& relay : relays()) {
    TERSE_ASSIGN_OR_RETURN(const LoadedServer::Sample own, relay.process->Take());
    sample.relays.push_back(own);
  }
  return sample;
}

absl::Status LoadedTree::CheckRun() {
  for (Server& server : servers_) TERSE_RETURN_IF_ERROR(server.process->CheckRuns());
  return absl::OkStatus();
}

absl::Status LoadedTree::Stop() {
  for (Server& relay : relays()) TERSE_RETURN_IF_ERROR(relay.process->Stop());
  return coordinator().process->Stop();
}

}  // namespace terse
