// `tersectl doctor`: what may keep a fleet from working, seen from this machine, and what to do about it.
#ifndef TERSE_TERSECTL_DOCTOR_H_
#define TERSE_TERSECTL_DOCTOR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tersectl/commands.h"

namespace terse {

enum class Health { kOk, kWarning, kFailure };

struct Finding {
  std::string check;  // "disk", "clock", ...
  Health health = Health::kOk;
  std::string detail;  // what was found
  std::string remedy;  // what to do; empty when all is well
};

// The checks, as pure functions of what was found out.

// `reply` came at `received`, asked for at `sent`: the coordinator's clock is known to half of the time between.
Finding CheckClock(const v1::Coordinator& coordinator, absl::Time sent, absl::Time received);
Finding CheckVersion(const v1::Coordinator& coordinator);
// A warning below 1 GB, a failure below 100 MB.
Finding CheckDisk(const v1::Coordinator& coordinator);
Finding CheckRun(const v1::Run& run);
// A warning less than 14 days before the end.
Finding CheckEnd(const std::string& check, absl::Time end, absl::Time now, const std::string& remedy);
// Whether the coordinator has the authority's newest list.
Finding CheckRevocations(const v1::Coordinator& coordinator, absl::Time issued);

// The TLS folder and what is in it: its certificate, the authority's, and whether others can read the key.
void ExamineTls(const std::string& directory, std::vector<Finding>* findings);

// With `options.state_directory`, looks at that directory and asks nobody (doctor_state.h). Otherwise at the
// coordinator at `options.coordinator` and, where it is named, at the authority's folder. Both times at the TLS folder
// that is named. Prints a line for each check, or with --json a list; FAILED_PRECONDITION when one failed.
struct DoctorOptions : CommandOptions {
  std::string authority_directory;  // the authority's, when it is on this machine
  std::string state_directory;      // anybody's; empty: the coordinator is asked
};

absl::Status Diagnose(const DoctorOptions& options, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_DOCTOR_H_
