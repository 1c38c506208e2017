#include "tests/faults/fleet_settings.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

struct Kind {
  const char* title;
  int clients;
  const char* rounds;  // lines of [rounds] besides count, clients and deadline
  FleetTrait trait = FleetTrait::kNone;
  int relays = 0;
  bool packed = false;
  bool forwards = false;
};

constexpr Kind kKinds[] = {
    {"3 clients, all in every round", 3, "quorum = 3\n"},
    {"4 clients, quorum 2", 4, "quorum = 2\ngrace_seconds = 0.1\n"},
    {"4 clients, random cohort, over-selection", 4,
     "selection = 'random'\nfraction = 0.5\nover_selection = 0.5\nquorum = 1\n"},
    {"4 clients, random order, quorum 3, weighted by samples", 4,
     "selection = 'random'\nfraction = 1.0\nover_selection = 0.5\nquorum = 3\nweighting = 'samples'\n"},
    {"4 clients, cohort by reliability, weighted by samples", 4,
     "selection = 'reliability'\nfraction = 0.75\nover_selection = 0.34\nquorum = 2\nweighting = 'samples'\n"},
    {"3 clients, updates of several chunks", 3, "quorum = 3\n", FleetTrait::kChunks},
    {"4 clients, quorum 2, a server with a residual and momentum", 4, "quorum = 2\n", FleetTrait::kServerState},
    {"4 clients, buffered rounds of 2 updates", 4, "mode = 'buffered'\nbuffer = 2\nstaleness = 3\n",
     FleetTrait::kBuffered},
    {"4 clients, quorum 2, stages of a schedule", 4, "quorum = 2\n", FleetTrait::kPlanned},
    {"3 clients, epochs of four gradients", 3, "mode = 'buffered'\nstaleness = 3\n", FleetTrait::kEpochs},
    {"4 clients, quorum 2, packed updates", 4, "quorum = 2\n", FleetTrait::kPacked, 0, true},
};

// Where clients move, the coordinator goes on with one relay: the others may have no clients.
constexpr Kind kTreeKinds[] = {
    {"2 relays, 2 clients each", 4, "quorum = 2\n", FleetTrait::kNone, 2},
    {"2 relays, 2 clients each, which move", 4, "quorum = 1\n", FleetTrait::kMoves, 2},
    {"3 relays, 2 clients each, which move", 6, "quorum = 1\n", FleetTrait::kMoves, 3},
    {"2 relays, 2 clients each, which move; packed updates", 4, "quorum = 1\n", FleetTrait::kMoves, 2, true},
    {"2 relays that forward, 2 clients each", 4, "quorum = 2\n", FleetTrait::kNone, 2, false, true},
    {"2 relays that forward, 2 clients each, which move", 4, "quorum = 1\n", FleetTrait::kMoves, 2, false, true},
};

constexpr double kDeadlineSeconds = 0.25;
// A round of a tree takes the way through two levels, and a round of its relays has four fifths of the time.
constexpr double kTreeDeadlineSeconds = 1.0;

// Where updates are forwarded, the log says whose they were. A run that forwards takes no bundles of relays. With bf16
// means, or plain float32, all values of clients stay on a dyadic grid, on which float additions are exact.
const char* CodecLines(const Kind& kind) {
  if (kind.packed) {
    return "name = 'sbc'\ndensity = 0.1\nmean_precision = 'bf16'\npositions = 'shared'\ndownstream = 'forward'\n";
  }
  if (kind.forwards) {
    return "name = 'sbc'\ndensity = 0.02\nmean_precision = 'bf16'\ndownstream = 'stc'\n[downstream]\ndensity = 0.05\n";
  }
  switch (kind.trait) {
    case FleetTrait::kChunks:
      return "name = 'dense'\ndownstream = 'forward'\n";
    case FleetTrait::kServerState:
      return "name = 'sbc'\ndensity = 0.02\nmean_precision = 'bf16'\ndownstream = 'stc'\n"
             "[downstream]\ndensity = 0.05\n[server]\noptimizer = 'sgd'\nlearning_rate = 0.5\n";
    case FleetTrait::kPlanned:
      // The fleet's losses are as good as random, so stages go by for as long as there are some.
      return "name = 'sbc'\nmean_precision = 'bf16'\ndownstream = 'forward'\n[control]\nname = 'schedule'\nby = "
             "'plateau'\npatience = 2\n"
             "density = [0.02, 0.1, 0.005, 0.05, 0.02, 0.1, 0.005, 0.05, 0.02, 0.1, 0.005, 0.05, 0.02, 0.1, 0.005]\n"
             "local_steps = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]\n";
    case FleetTrait::kEpochs:
      return "name = 'dense'\nfeedback = 'discard'\ndownstream = 'low_precision'\n"
             "[downstream]\nbits = 8\n[server]\noptimizer = 'acc_svrg'\nlearning_rate = 0.01\nepoch_length = 4\n";
    case FleetTrait::kPacked:
    case FleetTrait::kNone:
    case FleetTrait::kBuffered:
    case FleetTrait::kMoves:
      break;
  }
  return "name = 'sbc'\ndensity = 0.02\nmean_precision = 'bf16'\ndownstream = 'forward'\n";
}

}  // namespace

const Layout& FleetSettings::layout() const { return trait == FleetTrait::kChunks ? WideGridLayout() : GridLayout(); }

absl::StatusOr<RunConfig> FleetSettings::config() const {
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config, ParseRunConfig(run_file, kCampaignRun));
  return ToCore(config);
}

int SettingsKinds(Topology topology) {
  return static_cast<int>(topology == Topology::kTree ? std::size(kTreeKinds) : std::size(kKinds));
}

FleetSettings SettingsOf(uint64_t seed, Topology topology) {
  const uint64_t turn = seed % SettingsKinds(topology);
  const Kind& kind = topology == Topology::kTree ? kTreeKinds[turn] : kKinds[turn];
  FleetSettings settings;
  settings.title = kind.title;
  settings.relays = kind.relays;
  settings.relays_forward = kind.forwards;
  settings.clients = kind.clients;
  settings.trait = kind.trait;
  settings.deadline_seconds = kind.relays > 0 ? kTreeDeadlineSeconds : kDeadlineSeconds;
  // A client that moves finds no shard that is free, so that all have the same data. Checkpoints and rounds are kept,
  // so that the log and its rows have every update.
  settings.run_file = absl::StrCat(
      "name = '", kCampaignRun, "'\nseed = ", seed % 1000000,
      "\n[train]\nlocal_steps = 1\noptimizer = {name = 'sgd', momentum = 0.0, learning_rate = 1.0}\n",
      // The books of a tree are of means.
      kind.relays > 0 ? "[data]\npartition = 'all'\n[aggregation]\nrule = 'mean'\n" : "", "[codec]\n", CodecLines(kind),
      "[rounds]\ncount = 100000000\nclients = ", kind.relays > 0 ? kind.relays : kind.clients,
      "\ndeadline_seconds = ", settings.deadline_seconds, "\nevaluate_every = 50\n", kind.rounds,
      "[clients]\nset_aside_after = 0\n[ledger]\nkeep_rounds = 0\n[checkpoints]\nkeep = 1000\nevery = ",
      kind.relays > 0 ? 5 : 10, "\n");
  return settings;
}

}  // namespace terse
