// The books of a coordinator, its relays and their clients, who may move: an update that was lost or counts twice
// anywhere is seen in the sums of the whole tree.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "core/status.h"
#include "storage/run_store.h"
#include "tests/faults/fleet_books.h"
#include "tests/faults/run_checker.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/tree_books.h"

namespace terse {
namespace {

// The directories that a process of the tree had, one after the other: all but the last were taken away from it.
struct Life {
  std::string client_state;  // of a relay, that of its client half
  std::string run;           // of a relay
};

class StoredTree : public FleetBooks {
 public:
  explicit StoredTree(FaultyFleet* fleet) : fleet_(fleet) {}

  // The content of its directory stays in the books: its own updates may still be on their way, and a relay's clients
  // know what it has applied. The process begins anew, and each of those that know it counts a residual that was lost.
  absl::Status TakeState(int member) override {
    const std::string state = fleet_->StateOf(member);
    const std::string taken = absl::StrCat(state, "-taken-", earlier_[member].size());
    std::error_code error;
    std::filesystem::rename(state, taken, error);
    if (error) return absl::InternalError(absl::StrCat("cannot take ", state, " away: ", error.message()));
    Life life = LifeOf(member);
    for (std::string* path : {&life.client_state, &life.run}) path->replace(0, state.size(), taken);
    earlier_[member].push_back(std::move(life));
    return absl::OkStatus();
  }

  Findings Check() override {
    Findings findings;
    const FleetSettings& settings = fleet_->settings();
    const auto config = settings.config();
    const auto codec = config.ok() ? MakeUpdateCodec(*config, settings.layout()) : config.status();
    const auto coded = config.ok() ? MakeDownstreamCodec(*config, settings.layout()) : config.status();
    const auto root = RunStore::Open(fleet_->RunOf(0));
    for (const absl::Status& status : {codec.status(), coded.status(), root.status()}) {
      if (status.ok()) continue;
      findings.problems.emplace_back(status.message());
      return findings;
    }
    const DownstreamCodecs codecs(**codec, coded->get());
    RunChecker run(root->get(), *config, codecs, settings.updates_each(), &findings);
    run.CheckRun(GridInitialWeights(settings.layout()));
    CheckClientsOf(root->get(), &run, /*is_root=*/true);
    for (const int relay : fleet_->MembersOf(Side::kRelay)) CheckRelay(relay, root->get(), *config, codecs, &findings);
    CheckSums(root->get(), **codec, &run, &findings);
    return findings;
  }

 private:
  Life LifeOf(int member) const { return {fleet_->ClientStateOf(member), fleet_->RunOf(member)}; }

  std::vector<Life> LivesOf(int member) {
    std::vector<Life> lives = earlier_[member];
    lives.push_back(LifeOf(member));
    return lives;
  }

  int MemberNamed(const std::string& name) const {
    int member = 0;
    while (member < fleet_->members() && fleet_->NameOf(member) != name) ++member;
    return member;
  }

  // A client whose state was taken away makes its first updates again, and where relays forward the log has both.
  bool UpdatesDiffer() const {
    const std::vector<int> clients = fleet_->MembersOf(Side::kClient);
    const auto began_anew = [this](int client) {
      const auto lives = earlier_.find(client);
      return lives != earlier_.end() && !lives->second.empty();
    };
    return !fleet_->settings().relays_forward || std::none_of(clients.begin(), clients.end(), began_anew);
  }

  // Those who check in with the coordinator or with a relay.
  void CheckClientsOf(RunStore* store, RunChecker* run, bool is_root) {
    const absl::StatusOr<std::vector<ClientRecord>> records = store->Clients();
    if (!run->Expect(records.status(), "the clients")) return;
    for (const ClientRecord& record : *records) {
      const auto most_resets = static_cast<int64_t>(earlier_[MemberNamed(record.name)].size());
      run->CheckResets(record, record.name, most_resets);
      if (!is_root) continue;
      if (UpdatesDiffer()) run->FindDoubled(record, record.name, /*after_version=*/0);
      run->CheckBooked(record, record.name);
    }
  }

  // A relay's run: its clients, and that its model is the root's of that version (I3).
  void CheckRelay(int relay, RunStore* root, const RunConfig& config, const DownstreamCodecs& codecs,
                  Findings* findings) {
    if (!std::filesystem::exists(fleet_->RunOf(relay) + "/run.sqlite")) return;
    const auto store = RunStore::Open(fleet_->RunOf(relay));
    if (!store.ok()) {
      findings->problems.push_back(absl::StrCat(fleet_->NameOf(relay), ": ", store.status().message()));
      return;
    }
    RunChecker run(store->get(), config, codecs, /*updates_each=*/1, findings);
    run.CheckEvents();
    CheckClientsOf(store->get(), &run, /*is_root=*/false);
    run.Expect(CheckModel(store->get(), root), fleet_->NameOf(relay));
  }

  static absl::Status CheckModel(RunStore* relay, RunStore* root) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, relay->Run());
    if (!run.has_value()) return absl::OkStatus();  // it died while it made the run
    TERSE_ASSIGN_OR_RETURN(const Head head, relay->GetHead());
    Id128 expected;
    if (head.version == 0) {
      TERSE_ASSIGN_OR_RETURN(expected, root->StartHash());
    } else {
      TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, root->ReadLog(head.version - 1, head.version));
      expected = log.front().model_hash;
    }
    if (head.model_hash == expected) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("its version ", head.version, " is another model than the coordinator's"));
  }

  // I1 and I2 of the whole tree.
  void CheckSums(RunStore* root, const Codec& codec, RunChecker* run, Findings* findings) {
    TreeBooks books(codec, fleet_->settings().clients_each(), fleet_->settings().relays_forward);
    if (!run->Expect(AddAll(root, &books), "the books of the tree")) {
      findings->lost += findings->doubled == 0 ? 1 : 0;
      return;
    }
    if (books.doubled() > 0) {
      findings->doubled += books.doubled();
      run->Violation(absl::StrCat(books.doubled(), " updates are applied more than once"));
    }
    const std::vector<double>& difference = books.difference();
    const int64_t wrong = difference.size() - std::count(difference.begin(), difference.end(), 0.0);
    if (wrong == 0) return;
    const int64_t updates = UpdatesBehind(codec, wrong, run->applied(0));
    findings->lost += updates;
    run->Violation(absl::StrCat(wrong,
                                " elements of applied updates + residuals of relays - means of what their clients "
                                "handed on are not 0: ",
                                updates, " updates lost, or counted twice under another id"));
  }

  absl::Status AddAll(RunStore* root, TreeBooks* books) {
    TERSE_RETURN_IF_ERROR(books->AddRoot(root, fleet_->RunOf(0)));
    for (const int relay : fleet_->MembersOf(Side::kRelay)) {
      for (const Life& life : LivesOf(relay)) {
        TERSE_RETURN_IF_ERROR(Annotate(books->AddRelay(life.run, life.client_state), fleet_->NameOf(relay)));
      }
    }
    for (const int client : fleet_->MembersOf(Side::kClient)) {
      for (const Life& life : LivesOf(client)) {
        TERSE_RETURN_IF_ERROR(
            Annotate(books->AddClient(life.client_state, fleet_->GridClientOf(client)), fleet_->NameOf(client)));
      }
    }
    return absl::OkStatus();
  }

  FaultyFleet* const fleet_;
  std::map<int, std::vector<Life>> earlier_;  // by member
};

}  // namespace

std::unique_ptr<FleetBooks> MakeTreeBooks(FaultyFleet* fleet) { return std::make_unique<StoredTree>(fleet); }

}  // namespace terse
