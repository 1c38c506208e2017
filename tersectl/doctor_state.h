// `tersectl doctor --state DIR`: a state directory, looked at on its own machine, without a coordinator.
#ifndef TERSE_TERSECTL_DOCTOR_STATE_H_
#define TERSE_TERSECTL_DOCTOR_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/examination.h"
#include "tersectl/doctor.h"

namespace terse {

// The checks, as pure functions of what was found out.

// Makes a finding of an error, which says what is wrong, a semicolon, and what to do.
Finding FindingOf(const std::string& check, const absl::Status& status, Health health);
// Checks whether the next checkpoint or seal, of `next` bytes, fits the `free` bytes of a disk of `size` bytes. A
// failure when it does not, and a warning when the one after it might not.
Finding CheckRoom(uint64_t free, uint64_t size, uint64_t next, const std::string& what, const std::string& directory);
// Checks the run's directory: state, database, checkpoints.
std::vector<Finding> CheckRunFiles(const std::string& name, const RunExamination& run);
// Checks a client's sealed update and losses, the manifest and the files that it names. `held`: a process works with
// them.
std::vector<Finding> CheckClientFiles(const ClientExamination& client, bool held);

// Looks at a coordinator's or a client's directory and writes nothing into it; copies of databases go to the machine's
// temporary folder. A check that takes longer than two seconds says on terminal.err how far it is.
std::vector<Finding> ExamineState(const std::string& directory, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_DOCTOR_STATE_H_
