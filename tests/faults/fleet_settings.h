// The runs of the kill campaign: small fleets with exact deltas (tests/testing/grid_trainer.h), each with other rules
// for who takes part in a round and when it closes.
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
  kRelays        // clients move between coordinators of one root: no fleet of the campaign has such
};

struct FleetSettings {
  std::string title;  // one line for people
  int clients = 0;
  FleetTrait trait = FleetTrait::kNone;
  std::string run_file;  // TOML

  const Layout& layout() const;
  // Parses the run file.
  absl::StatusOr<RunConfig> config() const;
};

inline constexpr char kCampaignRun[] = "campaign";
inline constexpr double kDeadlineSeconds = 0.25;

// Kinds of settings take turns with the seed, so that so many seeds in a row have them all.
inline constexpr int kSettingsKinds = 11;
FleetSettings SettingsOf(uint64_t seed);

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_FLEET_SETTINGS_H_
