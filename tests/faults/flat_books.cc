// The books of a coordinator and its clients: for each client, applied updates + residual == sum of sealed deltas.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "core/status.h"
#include "storage/client_state.h"
#include "storage/run_store.h"
#include "tests/faults/fleet_books.h"
#include "tests/faults/run_checker.h"
#include "tests/testing/conservation.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/histories.h"

namespace terse {
namespace {

// A client of the stopped fleet.
struct StoredClient {
  std::string name;
  std::string state_directory;
  Baseline baseline;            // where its books start: moved when its state was taken away on purpose
  int64_t expected_resets = 0;  // residuals that were counted as lost up to the last check
  bool may_reset = false;       // its state was taken away since then
};

// The check of one client after the other, once the run is checked.
class ClientChecker {
 public:
  // Everything must outlive it.
  ClientChecker(RunStore* store, const RunConfig& config, const Codec& codec, RunChecker* run, Findings* findings)
      : store_(store), config_(config), codec_(codec), run_(run), findings_(findings) {}

  void CheckBooks(const ClientRecord& record, StoredClient* client) {
    const bool comparable = CheckResets(record, client);
    run_->CheckBooked(record, client->name);
    const absl::StatusOr<std::unique_ptr<ClientState>> state = ClientState::Open(client->state_directory);
    if (!run_->Expect(state.status(), client->name) || !comparable) return;
    const absl::StatusOr<StoredState> stored = (*state)->Read();
    if (!run_->Expect(stored.status(), client->name)) return;
    if (config_.codec.positions == kSharedPositions) {
      run_->Expect(CheckHistories(store_, codec_, record.id, **state), client->name);
    }
    if (config_.codec.feedback == "discard") return CheckSeals(record, *client, *stored);
    absl::StatusOr<std::vector<double>> difference =
        ConservationDifference(store_, codec_, record.id, *stored, client->baseline);
    if (run_->Expect(difference.status(), client->name)) {
      CountLost(record, *client, *std::move(difference));
    } else if (findings_->doubled == 0) {
      ++findings_->lost;
    }
  }

 private:
  // Checks clients that drop what was not applied and send their gradients whole: each applied update must be one that
  // was sealed.
  void CheckSeals(const ClientRecord& record, const StoredClient& client, const StoredState& stored) {
    const auto sealed_as = [&](int64_t step, absl::string_view message) {
      std::vector<float> sent(codec_.layout().size(), 0.0f);
      return codec_.AddDecoded(message, 1, absl::MakeSpan(sent)).ok() &&
             sent == GridDelta(record.id, step, codec_.layout());
    };
    const absl::StatusOr<int64_t> surplus = FirstNotSealed(store_, record.id, stored, client.baseline, sealed_as);
    if (!run_->Expect(surplus.status(), client.name) || *surplus < 0) return;
    ++findings_->doubled;
    run_->Violation(absl::StrCat(client.name, ": applied update ", *surplus, " was not sealed then"));
  }

  bool CheckResets(const ClientRecord& record, StoredClient* client) {
    const bool expected =
        run_->CheckResets(record, client->name, client->may_reset ? record.resets : client->expected_resets);
    client->expected_resets = record.resets;
    client->may_reset = false;
    return expected;
  }

  // Counts as lost updates the differences that doubled updates do not explain.
  void CountLost(const ClientRecord& record, const StoredClient& client, std::vector<double> difference) {
    for (const absl::string_view message : run_->doubled(record.id)) {
      std::vector<float> once(difference.size());
      if (!run_->Expect(codec_.AddDecoded(message, 1, absl::MakeSpan(once)), client.name)) return;
      for (size_t i = 0; i < once.size(); ++i) difference[i] -= once[i];
    }
    const int64_t wrong = difference.size() - std::count(difference.begin(), difference.end(), 0.0);
    if (wrong == 0) return;
    const int64_t lost = UpdatesBehind(codec_, wrong, run_->applied(record.id));
    findings_->lost += lost;
    run_->Violation(absl::StrCat(client.name, ": ", wrong,
                                 " elements of applied updates + residual - sealed deltas are not 0: ", lost,
                                 " updates lost"));
  }

  RunStore* const store_;
  const RunConfig& config_;
  const Codec& codec_;
  RunChecker* const run_;
  Findings* const findings_;
};

class FlatBooks : public FleetBooks {
 public:
  explicit FlatBooks(FaultyFleet* fleet) : fleet_(fleet) {
    for (const int member : fleet->MembersOf(Side::kClient)) {
      StoredClient client;
      client.name = fleet->NameOf(member);
      client.state_directory = fleet->StateOf(member);
      clients_.push_back(std::move(client));
    }
  }

  // The coordinator dies too, so that nothing of the client's is on its way into the model: from the head on, the books
  // of both sides start at zero.
  absl::Status TakeState(int member) override {
    TERSE_RETURN_IF_ERROR(fleet_->Kill(0));
    std::filesystem::remove_all(fleet_->StateOf(member));
    StoredClient& client = clients_[fleet_->GridClientOf(member)];
    client.baseline = {0, fleet_->Version()};
    client.may_reset = true;
    return absl::OkStatus();
  }

  Findings Check() override {
    Findings findings;
    const FleetSettings& settings = fleet_->settings();
    const absl::StatusOr<std::unique_ptr<RunStore>> store = RunStore::Open(fleet_->RunOf(0));
    const auto config = settings.config();
    const auto codec = config.ok() ? MakeUpdateCodec(*config, settings.layout()) : config.status();
    const auto coded = config.ok() ? MakeDownstreamCodec(*config, settings.layout()) : config.status();
    const auto records = store.ok() ? (*store)->Clients() : store.status();
    for (const absl::Status& status : {store.status(), codec.status(), coded.status(), records.status()}) {
      if (status.ok()) continue;
      findings.problems.emplace_back(status.message());
      return findings;
    }
    RunChecker run(store->get(), *config, DownstreamCodecs(**codec, coded->get()), settings.updates_each(), &findings);
    run.CheckRun(GridInitialWeights(settings.layout()));
    ClientChecker checker(store->get(), *config, **codec, &run, &findings);
    std::vector<std::pair<const ClientRecord*, StoredClient*>> books;
    for (StoredClient& client : clients_) {
      const auto record = std::find_if(records->begin(), records->end(),
                                       [&client](const ClientRecord& one) { return one.name == client.name; });
      // A client that was never welcomed has no books yet.
      if (record != records->end() && std::filesystem::exists(client.state_directory + "/MANIFEST")) {
        books.emplace_back(&*record, &client);
      }
    }
    for (const auto& [record, client] : books) run.FindDoubled(*record, client->name, client->baseline.version);
    for (const auto& [record, client] : books) checker.CheckBooks(*record, client);
    return findings;
  }

 private:
  FaultyFleet* const fleet_;
  std::vector<StoredClient> clients_;  // in their order
};

}  // namespace

std::unique_ptr<FleetBooks> MakeFlatBooks(FaultyFleet* fleet) { return std::make_unique<FlatBooks>(fleet); }

std::unique_ptr<FleetBooks> MakeFleetBooks(FaultyFleet* fleet) {
  return fleet->settings().relays > 0 ? MakeTreeBooks(fleet) : MakeFlatBooks(fleet);
}

}  // namespace terse
