// The part of the campaign's check that is the same for every coordinator, whoever its clients are.
#ifndef TERSE_TESTS_FAULTS_RUN_CHECKER_H_
#define TERSE_TESTS_FAULTS_RUN_CHECKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compression/codec.h"
#include "compression/downstream.h"
#include "core/run_config.h"
#include "storage/run_store.h"
#include "tests/faults/fleet_books.h"

namespace terse {

// The updates of one client in the log, in order, with their versions.
struct Applied {
  std::vector<std::string> messages;
  std::vector<int64_t> versions;
};

// Returns how many updates it takes to explain that so many elements' sums are wrong.
int64_t UpdatesBehind(const Codec& codec, int64_t wrong_elements, const Applied& applied);

// Not thread-safe.
class RunChecker {
 public:
  // Everything must outlive it. `updates_each`: those that each client of the run has in each of its rounds; more than
  // one where the clients are relays that forward.
  RunChecker(RunStore* store, const RunConfig& config, const DownstreamCodecs& codecs, int updates_each,
             Findings* findings)
      : store_(store), config_(config), codecs_(codecs), updates_each_(updates_each), findings_(findings) {}

  // The log, its replay from `initial`, the server's steps, the plans, the newest checkpoint and the events. First.
  void CheckRun(const std::vector<float>& initial);
  // That no event says that something wrong was sent or found.
  void CheckEvents();
  // Finds updates of a client that are in the log twice, after a version. Called before the books of any client are
  // looked at, because such an update leaves no client's books readable.
  void FindDoubled(const ClientRecord& record, const std::string& name, int64_t after_version);
  // That as many updates of the client are booked as are in the log.
  void CheckBooked(const ClientRecord& record, const std::string& name);
  // False when more of the client's residuals were given up than `most`: that counts by itself, and its books do not
  // begin at 0 any more.
  bool CheckResets(const ClientRecord& record, const std::string& name, int64_t most);

  const Applied& applied(int64_t client) { return applied_[client]; }
  // Surplus ones that FindDoubled has found. The views live as long as this object.
  const std::vector<absl::string_view>& doubled(int64_t client) { return doubled_[client]; }

  // Notes a status that is not OK as a violation. Returns whether it is OK.
  bool Expect(const absl::Status& status, absl::string_view where);
  void Violation(std::string line) { findings_->problems.push_back(std::move(line)); }

 private:
  RunStore* const store_;
  const RunConfig& config_;
  const DownstreamCodecs codecs_;
  const int updates_each_;
  Findings* const findings_;
  std::map<int64_t, Applied> applied_;                         // by client
  std::map<int64_t, std::vector<absl::string_view>> doubled_;  // the same
};

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_RUN_CHECKER_H_
