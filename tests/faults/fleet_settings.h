// The runs of the kill campaign: small fleets with exact deltas (tests/testing/grid_trainer.h), each with other rules
// for who takes part in a round and when it closes, or with relays between the coordinator and its clients.
#ifndef TERSE_TESTS_FAULTS_FLEET_SETTINGS_H_
#define TERSE_TESTS_FAULTS_FLEET_SETTINGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// A trait that only some of the campaign's fleets have.
enum class FleetTrait {
  kNone,
  kChunks,       // updates of several chunks
  kServerState,  // a server with a residual and an optimizer
  kBuffered,     // clients that do not wait for each other; no round is given up at its deadline
  kPlanned,      // a controller changes local steps and density while the run goes on
  kEpochs,       // the same, with gradients that are dropped when they come too late
  kPacked,       // updates travel packed with what both ends keep of the ones before
  kMoves         // relays, and clients that know the other relays' addresses too, to which they move
};

// Whether a fleet has a level of relays.
enum class Topology { kFlat, kTree };

struct FleetSettings {
  std::string title;            // one line for people
  int relays = 0;               // 0: the clients are connected to the coordinator
  bool relays_forward = false;  // and do not recompress
  int clients = 0;              // in all; with relays, each has as many
  FleetTrait trait = FleetTrait::kNone;
  double deadline_seconds = 0;
  std::string run_file;  // TOML

  bool moves() const { return trait == FleetTrait::kMoves; }
  // The clients of each relay, which are also the updates of each of its rounds: so all means are exact.
  int clients_each() const { return relays == 0 ? 0 : clients / relays; }
  // The updates in the log of one who checks in with the coordinator, in each of its rounds.
  int updates_each() const { return relays_forward ? clients_each() : 1; }

  const Layout& layout() const;
  // Parses the run file.
  absl::StatusOr<RunConfig> config() const;
};

inline constexpr char kCampaignRun[] = "campaign";

// Kinds of settings take turns with the seed, so that so many seeds in a row have them all.
int SettingsKinds(Topology topology);
FleetSettings SettingsOf(uint64_t seed, Topology topology);

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_FLEET_SETTINGS_H_
