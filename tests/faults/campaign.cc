#include "tests/faults/campaign.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/faults/stored_state.h"

namespace terse {
namespace {

// Invariant I5: when faults stop, the next round commits. No machine should need this long.
constexpr absl::Duration kRecoveryLimit = absl::Seconds(60);
// A process that has not come by its failpoint by then is killed, and the failpoint counts as missed.
constexpr absl::Duration kDeathLimit = absl::Seconds(20);
constexpr absl::Duration kPollEvery = absl::Milliseconds(2);
// The time between two provocations; it is twice as long after each, so that a slow machine gets somewhere in between.
constexpr absl::Duration kProvokeAfter = absl::Milliseconds(200);
// Long enough that the deadline of an open round passes, grace included.
constexpr absl::Duration kStallFor = absl::Milliseconds(500);
constexpr double kMaxRandomMs = 60;
constexpr int64_t kKillsBetweenChecks = 7;
// Times that a new fleet dies before it has done anything, with a run and state directories that are half made.
constexpr int kEarlyDeaths = 2;
constexpr uint64_t kTraitTakesOneIn = 4;
// The share of all blows that hit both sides at once.
constexpr double kBothSides = 0.3;

// A member that is to die at a failpoint.
struct Shot {
  int member = 0;
  const FailpointPlan* plan = nullptr;
  int pass = 1;
};

class FleetCampaign {
 public:
  FleetCampaign(const FleetOptions& options, FleetResult* result)
      : random_(options.seed),
        result_(result),
        fleet_({options.coordinator, options.client, options.mutant, options.directory, options.address},
               SettingsOf(options.seed)) {
    for (int member = 1; member < fleet_.members(); ++member) {
      StoredClient client;
      client.name = FaultyFleet::NameOf(member);
      client.state_directory = fleet_.StateOf(member);
      clients_.push_back(std::move(client));
    }
    for (const Side side : kSides) decks_[side] = ShuffledPlans(side);
  }

  absl::Status Run(const std::function<bool()>& stopping) {
    for (int birth = 0; birth < kEarlyDeaths; ++birth) TERSE_RETURN_IF_ERROR(StartAndKill(EveryMember()));
    TERSE_RETURN_IF_ERROR(StartAll());
    while (!stopping()) {
      std::vector<Shot> shots = DrawShots();
      if (shots.empty()) break;
      TERSE_RETURN_IF_ERROR(Strike(shots));
      if (fleet_.total_kills() - kills_at_check_ < kKillsBetweenChecks) continue;
      TERSE_RETURN_IF_ERROR(CheckInvariants());
      TERSE_RETURN_IF_ERROR(StartAll());
    }
    return CheckInvariants();
  }

  void TakeKills() {
    for (const Side side : kSides) result_->kills[side] = fleet_.kills(side);
  }

 private:
  std::vector<const FailpointPlan*> ShuffledPlans(Side side) {
    std::vector<const FailpointPlan*> plans;
    for (const FailpointPlan& plan : FailpointPlans()) {
      // Fleets with a trait are there for what only they come by; of the rest they take some.
      const FleetTrait trait = fleet_.settings().trait;
      const bool special = trait != FleetTrait::kNone && plan.trait == FleetTrait::kNone;
      const bool buffered = trait == FleetTrait::kBuffered || trait == FleetTrait::kEpochs;
      const bool can_stall = !buffered || plan.provocation != Provocation::kStall;
      const bool wanted = can_stall && (special ? random_.Below(kTraitTakesOneIn) == 0 : plan.trait == trait);
      if (plan.side == side && wanted) plans.push_back(&plan);
    }
    for (size_t left = plans.size(); left > 1; --left) std::swap(plans[left - 1], plans[random_.Below(left)]);
    return plans;
  }

  // The next blow: a side, or both. Empty when every failpoint had its turn.
  std::vector<Shot> DrawShots() {
    std::vector<Shot> shots;
    const bool both = random_.Uniform() < kBothSides;
    const Side first =
        decks_[Side::kClient].size() > decks_[Side::kCoordinator].size() ? Side::kClient : Side::kCoordinator;
    for (const Side side : kSides) {
      std::vector<const FailpointPlan*>& deck = decks_[side];
      if (deck.empty() || (!both && side != first)) continue;
      const FailpointPlan* plan = deck.back();
      deck.pop_back();
      const int member = side == Side::kCoordinator ? 0 : 1 + static_cast<int>(random_.Below(clients_.size()));
      shots.push_back({member, plan, 1 + static_cast<int>(random_.Below(plan->most_passes))});
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
      if (shot.plan->provocation == Provocation::kLoseModel)
        std::filesystem::remove(fleet_.StateOf(shot.member) + "/model");
      if (shot.plan->provocation == Provocation::kLoseState) TERSE_RETURN_IF_ERROR(LoseState(shot.member));
    }
    for (const Shot& shot : shots) fleet_.Start(shot.member, shot.plan, shot.pass);
    TERSE_RETURN_IF_ERROR(AwaitDeaths(shots));
    return AwaitRecovery(shots);
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

  // A dead client's directory goes away. The coordinator dies too, so that nothing of the client's is on its way into
  // the model: from the head on, the books of both sides start at zero.
  absl::Status LoseState(int member) {
    TERSE_RETURN_IF_ERROR(fleet_.Kill(0));
    std::filesystem::remove_all(fleet_.StateOf(member));
    StoredClient& client = clients_[member - 1];
    client.baseline = {0, fleet_.Version()};
    client.may_reset = true;
    return absl::OkStatus();
  }

  // Waits until every shot has hit; the dead come back at once.
  absl::Status AwaitDeaths(const std::vector<Shot>& shots) {
    const absl::Time limit = absl::Now() + kDeathLimit;
    absl::Duration pause = kProvokeAfter;
    absl::Time provoke_at = absl::Now() + pause;
    Revive();
    const auto armed = [this](const Shot& shot) { return fleet_.armed(shot.member); };
    while (true) {
      TERSE_RETURN_IF_ERROR(fleet_.Poll());
      Revive();
      if (std::none_of(shots.begin(), shots.end(), armed)) return Calm();
      if (absl::Now() > limit) return GiveUp(shots);
      if (absl::Now() > provoke_at) {
        for (const Shot& shot : shots) {
          if (armed(shot)) TERSE_RETURN_IF_ERROR(Provoke(shot));
        }
        provoke_at = absl::Now() + (stalled_ ? kStallFor : pause);
        pause *= 2;
      }
      absl::SleepFor(kPollEvery);
    }
  }

  void Revive() {
    for (int member = 0; member < fleet_.members(); ++member) {
      if (!fleet_.alive(member)) fleet_.Start(member);
    }
  }

  absl::Status Provoke(const Shot& shot) {
    if (shot.plan->provocation == Provocation::kRestartPeers) {
      const int peer = shot.member == 0 ? 1 + static_cast<int>(random_.Below(clients_.size())) : 0;
      // One that is to die at a failpoint of its own does so sooner or later.
      return fleet_.armed(peer) ? absl::OkStatus() : fleet_.Kill(peer);
    }
    if (shot.plan->provocation == Provocation::kStall) Stall(!stalled_);
    return absl::OkStatus();
  }

  void Stall(bool stall) {
    stalled_ = stall;
    for (int member = 1; member < fleet_.members(); ++member) fleet_.Signal(member, stall ? SIGSTOP : SIGCONT);
  }

  absl::Status Calm() {
    if (stalled_) Stall(false);
    return absl::OkStatus();
  }

  absl::Status GiveUp(const std::vector<Shot>& shots) {
    for (const Shot& shot : shots) {
      if (!fleet_.armed(shot.member)) continue;
      ++result_->missed[shot.plan->side][std::string(shot.plan->name)];
      TERSE_RETURN_IF_ERROR(fleet_.Kill(shot.member));
    }
    Revive();
    return Calm();
  }

  // Invariant I5, and how long it took when only one process had died.
  absl::Status AwaitRecovery(const std::vector<Shot>& shots) {
    for (const Shot& shot : shots) {
      TERSE_ASSIGN_OR_RETURN(const absl::Duration duration, AwaitRecoveryOf(shot.member));
      if (shots.size() > 1 || shot.plan->provocation != Provocation::kNone) continue;
      result_->recovery_ms[shot.plan->side].push_back(absl::ToDoubleMilliseconds(duration));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<absl::Duration> AwaitRecoveryOf(int member) {
    const absl::Time limit = absl::Now() + kRecoveryLimit;
    while (absl::Now() < limit) {
      TERSE_RETURN_IF_ERROR(fleet_.Poll());
      if (const absl::optional<absl::Duration> after = fleet_.Recovered(member); after.has_value()) return *after;
      absl::SleepFor(kPollEvery);
    }
    return absl::InternalError(absl::StrCat("I5: nothing was committed for ", FaultyFleet::NameOf(member), " within ",
                                            absl::FormatDuration(kRecoveryLimit), " of its last start"));
  }

  absl::Status StartAll() {
    for (int member = 0; member < fleet_.members(); ++member) fleet_.Start(member);
    // The processes get ready in no order: the one that starts last may be ready first.
    for (int member = 0; member < fleet_.members(); ++member) {
      TERSE_RETURN_IF_ERROR(AwaitRecoveryOf(member).status());
    }
    return absl::OkStatus();
  }

  // Stops the fleet, in order or not, and looks at what is on disk.
  absl::Status CheckInvariants() {
    if (random_.Below(2) == 0) {
      TERSE_RETURN_IF_ERROR(fleet_.StopInOrder());
    } else {
      for (int member = 0; member < fleet_.members(); ++member) TERSE_RETURN_IF_ERROR(fleet_.Kill(member));
    }
    kills_at_check_ = fleet_.total_kills();
    ++result_->checks;
    Findings findings = CheckStoredState(fleet_.RunState(), fleet_.settings(), absl::MakeSpan(clients_));
    AwaitStartingProcesses();  // of other fleets: they may hold the lock of what was just closed
    result_->rounds = findings.rounds;
    result_->lost += findings.lost;
    result_->doubled += findings.doubled;
    result_->problems = std::move(findings.problems);
    return result_->problems.empty() ? absl::OkStatus() : absl::InternalError("an invariant is violated");
  }

  Random random_;
  FleetResult* const result_;
  FaultyFleet fleet_;
  std::vector<StoredClient> clients_;
  std::map<Side, std::vector<const FailpointPlan*>> decks_;  // what is left to die at
  int64_t kills_at_check_ = 0;
  bool stalled_ = false;
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
  result.settings = SettingsOf(options.seed).title;
  FleetCampaign campaign(options, &result);
  const absl::Status status = campaign.Run(stopping);
  campaign.TakeKills();
  if (!status.ok() && result.problems.empty()) result.problems.emplace_back(status.message());
  return result;
}

}  // namespace terse
