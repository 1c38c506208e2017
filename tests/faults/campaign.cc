#include "tests/faults/campaign.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/faults/fleet_books.h"
#include "tests/faults/provocation.h"

namespace terse {
namespace {

// Invariant I5: when faults stop, the next round commits. No machine should need this long.
constexpr absl::Duration kRecoveryLimit = absl::Seconds(60);
// A process that has not come by its failpoint by then is killed, and the failpoint counts as missed.
constexpr absl::Duration kDeathLimit = absl::Seconds(20);
constexpr absl::Duration kPollEvery = absl::Milliseconds(2);
constexpr double kMaxRandomMs = 60;
constexpr int64_t kKillsBetweenChecks = 7;
// In a tree more of them die, because those that moved are brought home.
constexpr int64_t kKillsBetweenTreeChecks = 25;
// A tree takes its time until its sessions begin anew, once more after each provocation.
constexpr int kMostTreeSessions = 4;
// Times that a new fleet dies before it has done anything, with a run and state directories that are half made.
constexpr int kEarlyDeaths = 2;
constexpr uint64_t kTraitTakesOneIn = 4;
// The share of all blows that hit a second side at once, and likewise a third.
constexpr double kAnotherSide = 0.3;
// Where a relay may die so that it leaves a CLOSED round, whose result is sealed or not.
constexpr absl::string_view kLeaveClosedAt[] = {"relay.result.handed_up", "client.seal.before_manifest",
                                                "client.seal.done", "relay.result.sealed", "relay.commit.before"};

const FailpointPlan& PlanOf(absl::string_view name, Side side) {
  const auto plans = FailpointPlans();
  return *std::find_if(plans.begin(), plans.end(),
                       [&](const FailpointPlan& plan) { return plan.name == name && plan.side == side; });
}

class FleetCampaign {
 public:
  FleetCampaign(const FleetOptions& options, FleetResult* result)
      : options_(options),
        random_(options.seed),
        result_(result),
        fleet_({options.bin, options.mutant, options.directory, options.address},
               SettingsOf(options.seed, options.topology)),
        provoker_(&fleet_, &random_),
        books_(MakeFleetBooks(&fleet_)) {
    for (const Side side : kSides) decks_[side] = ShuffledPlans(side);
  }

  absl::Status Run(const std::function<bool()>& stopping) {
    const int64_t kills_between = options_.topology == Topology::kTree ? kKillsBetweenTreeChecks : kKillsBetweenChecks;
    for (int birth = 0; birth < kEarlyDeaths; ++birth) TERSE_RETURN_IF_ERROR(StartAndKill(EveryMember()));
    TERSE_RETURN_IF_ERROR(StartAll());
    while (!stopping()) {
      std::vector<Shot> shots = DrawShots();
      if (shots.empty()) break;
      TERSE_RETURN_IF_ERROR(Strike(shots));
      if (fleet_.total_kills() - kills_at_check_ < kills_between) continue;
      TERSE_RETURN_IF_ERROR(CheckInvariants());
      TERSE_RETURN_IF_ERROR(StartAll());
    }
    return CheckInvariants();
  }

  void TakeKills() {
    for (const Side side : kSides) result_->kills[side] = fleet_.kills(side);
  }

 private:
  // Fleets with a trait are there for what only they come by; of the rest they take some. Trees take everything, or
  // their turn of it.
  bool Wants(const FailpointPlan& plan, uint64_t row) {
    const FleetTrait trait = fleet_.settings().trait;
    if (!ComesBy(plan, options_.topology)) return false;
    if (options_.topology == Topology::kTree) return TakesTurn(plan, row);
    const bool special = trait != FleetTrait::kNone && plan.trait == FleetTrait::kNone;
    const bool buffered = trait == FleetTrait::kBuffered || trait == FleetTrait::kEpochs;
    const bool can_stall = !buffered || plan.provocation != Provocation::kStall;
    return can_stall && (special ? random_.Below(kTraitTakesOneIn) == 0 : plan.trait == trait);
  }

  // A client that has lost its state is reset by each relay that knows it, and with work that it did since then where
  // that was at another one: nobody can tell how much.
  static bool CanTake(const FailpointPlan& plan, const FleetSettings& settings) {
    const bool stays = plan.side == Side::kClient && plan.provocation == Provocation::kLoseState;
    return settings.moves() ? !stays : plan.trait != FleetTrait::kMoves;
  }

  // A failpoint that would fall to a kind that cannot take it falls to the next one that can.
  bool TakesTurn(const FailpointPlan& plan, uint64_t row) const {
    if (!CanTake(plan, fleet_.settings())) return false;
    while (!CanTake(plan, SettingsOf(row, Topology::kTree))) ++row;
    const uint64_t kinds = SettingsKinds(Topology::kTree);
    return !options_.takes_turns || row % kinds == options_.seed % kinds;
  }

  std::vector<const FailpointPlan*> ShuffledPlans(Side side) {
    std::vector<const FailpointPlan*> plans;
    uint64_t row = 0;
    for (const FailpointPlan& plan : FailpointPlans()) {
      if (plan.side == side && Wants(plan, row)) plans.push_back(&plan);
      ++row;
    }
    for (size_t left = plans.size(); left > 1; --left) std::swap(plans[left - 1], plans[random_.Below(left)]);
    return plans;
  }

  int MostPasses(const FailpointPlan& plan) const {
    const bool few = options_.topology == Topology::kTree && plan.provocation == Provocation::kRestartPeers;
    return few ? std::min(plan.most_passes, kMostTreeSessions) : plan.most_passes;
  }

  // The next blow: a side, or several. Empty when every failpoint had its turn.
  std::vector<Shot> DrawShots() {
    std::vector<Shot> shots;
    const Side first = *std::max_element(std::begin(kSides), std::end(kSides),
                                         [this](Side a, Side b) { return decks_[a].size() < decks_[b].size(); });
    for (const Side side : kSides) {
      std::vector<const FailpointPlan*>& deck = decks_[side];
      if (deck.empty() || (side != first && random_.Uniform() >= kAnotherSide)) continue;
      const FailpointPlan* plan = deck.back();
      deck.pop_back();
      const std::vector<int> members = fleet_.MembersOf(side);
      const int member = members[random_.Below(members.size())];
      shots.push_back({member, plan, 1 + static_cast<int>(random_.Below(MostPasses(*plan)))});
    }
    return shots;
  }

  // Each of the members dies where it stands, perhaps again soon after its start, and at its failpoint; then the fleet
  // must recover.
  absl::Status Strike(const std::vector<Shot>& shots) {
    std::vector<int> hit;
    for (const Shot& shot : shots) hit.push_back(shot.member);
    TERSE_RETURN_IF_ERROR(KillAtRandom(hit));
    if (random_.Below(2) == 0) TERSE_RETURN_IF_ERROR(StartAndKill(hit));
    for (const Shot& shot : shots) {
      if (shot.plan->provocation == Provocation::kLeaveClosed) TERSE_RETURN_IF_ERROR(LeaveClosedRound(shot.member));
    }
    for (const Shot& shot : shots) {
      TERSE_RETURN_IF_ERROR(fleet_.Kill(shot.member));
      if (shot.plan->provocation == Provocation::kLoseModel)
        std::filesystem::remove(fleet_.ClientStateOf(shot.member) + "/model");
      if (shot.plan->provocation == Provocation::kLoseState) TERSE_RETURN_IF_ERROR(books_->TakeState(shot.member));
    }
    for (const Shot& shot : shots) fleet_.Start(shot.member, shot.plan, shot.pass);
    TERSE_RETURN_IF_ERROR(AwaitDeaths(shots));
    return AwaitRecovery(shots);
  }

  // Kills a relay, which stays dead, where it has a round that is CLOSED.
  absl::Status LeaveClosedRound(int relay) {
    const absl::string_view where = kLeaveClosedAt[random_.Below(std::size(kLeaveClosedAt))];
    const Shot shot = {relay, &PlanOf(where, Side::kRelay), 1};
    fleet_.Start(relay, shot.plan, shot.pass);
    provoker_.Hold(relay, absl::InfiniteFuture());
    TERSE_RETURN_IF_ERROR(AwaitDeaths({shot}));
    provoker_.Hold(relay, absl::InfinitePast());
    return absl::OkStatus();
  }

  absl::Status KillAtRandom(const std::vector<int>& hit) {
    for (const int member : hit) {
      absl::SleepFor(absl::Milliseconds(random_.Uniform(0, kMaxRandomMs)));
      TERSE_RETURN_IF_ERROR(fleet_.Kill(member));
    }
    return absl::OkStatus();
  }

  absl::Status StartAndKill(const std::vector<int>& hit) {
    for (const int member : hit) fleet_.Start(member);
    return KillAtRandom(hit);
  }

  std::vector<int> EveryMember() const {
    std::vector<int> all(fleet_.members());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // Waits until every shot has hit; the dead come back at once.
  absl::Status AwaitDeaths(const std::vector<Shot>& shots) {
    const absl::Time limit = absl::Now() + kDeathLimit;
    absl::Time provoke_at = absl::Now() + provoker_.NextPause();
    provoker_.Revive();
    const auto armed = [this](const Shot& shot) { return fleet_.armed(shot.member); };
    while (true) {
      TERSE_RETURN_IF_ERROR(fleet_.Poll());
      provoker_.Revive();
      if (std::none_of(shots.begin(), shots.end(), armed)) break;
      if (absl::Now() > limit) {
        TERSE_RETURN_IF_ERROR(GiveUp(shots));
        break;
      }
      if (absl::Now() > provoke_at) {
        TERSE_RETURN_IF_ERROR(provoker_.Provoke(shots));
        provoke_at = absl::Now() + provoker_.NextPause();
      }
      absl::SleepFor(kPollEvery);
    }
    provoker_.Calm();
    return absl::OkStatus();
  }

  absl::Status GiveUp(const std::vector<Shot>& shots) {
    for (const Shot& shot : shots) {
      if (!fleet_.armed(shot.member)) continue;
      ++result_->missed[shot.plan->side][std::string(shot.plan->name)];
      TERSE_RETURN_IF_ERROR(fleet_.Kill(shot.member));
    }
    provoker_.Revive();
    return absl::OkStatus();
  }

  // Invariant I5, and how long it took when only one process had died.
  absl::Status AwaitRecovery(const std::vector<Shot>& shots) {
    const int64_t kills = fleet_.total_kills();
    for (const Shot& shot : shots) {
      TERSE_ASSIGN_OR_RETURN(const absl::Duration duration, AwaitRecoveryOf(shot.member));
      const bool alone = shots.size() == 1 && shot.plan->provocation == Provocation::kNone;
      if (!alone || fleet_.total_kills() > kills) continue;
      result_->recovery_ms[shot.plan->side].push_back(absl::ToDoubleMilliseconds(duration));
    }
    return absl::OkStatus();
  }

  // Clients that have moved are gathered now and then: a relay without clients has no rounds.
  absl::StatusOr<absl::Duration> AwaitRecoveryOf(int member) {
    const absl::Time limit = absl::Now() + kRecoveryLimit;
    absl::Time gather_at = absl::Now() + provoker_.NextPause();
    while (absl::Now() < limit) {
      TERSE_RETURN_IF_ERROR(fleet_.Poll());
      provoker_.Revive();
      if (const absl::optional<absl::Duration> after = fleet_.Recovered(member); after.has_value()) {
        provoker_.Calm();
        return *after;
      }
      if (absl::Now() > gather_at) {
        TERSE_RETURN_IF_ERROR(provoker_.GatherClients());
        gather_at = absl::Now() + provoker_.NextPause();
      }
      absl::SleepFor(kPollEvery);
    }
    return absl::InternalError(absl::StrCat("I5: nothing was committed for ", fleet_.NameOf(member), " within ",
                                            absl::FormatDuration(kRecoveryLimit), " of its last start"));
  }

  // Relays that are not there yet would send their clients to others: so they come first, mostly.
  absl::Status StartServers() {
    const absl::Time limit = absl::Now() + kRecoveryLimit;
    for (int member = 0; member < fleet_.first_client(); ++member) fleet_.Start(member);
    for (int member = 0; member < fleet_.first_client();) {
      TERSE_RETURN_IF_ERROR(fleet_.Poll());
      if (fleet_.Ready(member)) {
        ++member;
      } else if (absl::Now() > limit) {
        return absl::InternalError(absl::StrCat(fleet_.NameOf(member), " does not serve"));
      }
      absl::SleepFor(kPollEvery);
    }
    return absl::OkStatus();
  }

  absl::Status StartAll() {
    if (options_.topology == Topology::kTree && random_.Below(4) > 0) TERSE_RETURN_IF_ERROR(StartServers());
    provoker_.Revive();
    return AwaitAll();
  }

  // Until all processes work. They get ready in no order, and while one is awaited others may be gathered, so that they
  // begin again.
  absl::Status AwaitAll() {
    int64_t kills = 0;
    do {
      kills = fleet_.total_kills();
      for (int member = 0; member < fleet_.members(); ++member) {
        TERSE_RETURN_IF_ERROR(AwaitRecoveryOf(member).status());
      }
    } while (fleet_.total_kills() > kills);
    return absl::OkStatus();
  }

  // Stops the fleet, in order or not, and looks at what is on disk.
  absl::Status CheckInvariants() {
    if (random_.Below(2) == 0) {
      // A process that has just begun does not end in order yet.
      TERSE_RETURN_IF_ERROR(AwaitAll());
      TERSE_RETURN_IF_ERROR(fleet_.StopInOrder());
    } else {
      for (int member = 0; member < fleet_.members(); ++member) TERSE_RETURN_IF_ERROR(fleet_.Kill(member));
    }
    kills_at_check_ = fleet_.total_kills();
    ++result_->checks;
    Findings findings = books_->Check();
    AwaitStartingProcesses();  // of other fleets: they may hold the lock of what was just closed
    result_->rounds = findings.rounds;
    result_->lost += findings.lost;
    result_->doubled += findings.doubled;
    result_->problems = std::move(findings.problems);
    return result_->problems.empty() ? absl::OkStatus() : absl::InternalError("an invariant is violated");
  }

  const FleetOptions options_;
  Random random_;
  FleetResult* const result_;
  FaultyFleet fleet_;
  Provoker provoker_;
  const std::unique_ptr<FleetBooks> books_;
  std::map<Side, std::vector<const FailpointPlan*>> decks_;  // what is left to die at
  int64_t kills_at_check_ = 0;
};

}  // namespace

int64_t FleetResult::KillsOf(Side side) const {
  int64_t sum = 0;
  for (const auto& [where, count] : kills.at(side)) sum += count;
  return sum;
}

FleetResult RunFleet(const FleetOptions& options, const std::function<bool()>& stopping) {
  FleetResult result;
  result.seed = options.seed;
  result.settings = SettingsOf(options.seed, options.topology).title;
  FleetCampaign campaign(options, &result);
  const absl::Status status = campaign.Run(stopping);
  campaign.TakeKills();
  if (!status.ok() && result.problems.empty()) result.problems.emplace_back(status.message());
  return result;
}

}  // namespace terse
