// A coordinator that holds no model: it gives one client its checkpoint and a number of rounds.
#ifndef TERSE_BENCH_SCRIPTED_COORDINATOR_H_
#define TERSE_BENCH_SCRIPTED_COORDINATOR_H_

#include <memory>
#include <queue>
#include <string>
#include <utility>

#include "client/coordinator_link.h"
#include "core/run_config.h"

namespace terse {

// Every update is applied, and the model never moves: nobody but the client holds it. Not thread-safe.
class ScriptedCoordinator : public CoordinatorLink {
 public:
  // `checkpoint` is the path of version 0.
  ScriptedCoordinator(std::shared_ptr<const RunConfig> config, std::string checkpoint, int64_t rounds)
      : config_(std::move(config)), checkpoint_(std::move(checkpoint)), rounds_(rounds) {}

  absl::Status Send(const FromClient& message) override;
  absl::StatusOr<FromServer> Receive() override;
  void SetMaxDownstreamBytes(int64_t) override {}
  absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) override;
  absl::StatusOr<std::string> DownloadModule(Id128 lineage, int64_t max_bytes) override;

 private:
  void NextRound();

  const std::shared_ptr<const RunConfig> config_;
  const std::string checkpoint_;
  const int64_t rounds_;
  int64_t round_ = 0;
  std::queue<FromServer> replies_;
};

}  // namespace terse

#endif  // TERSE_BENCH_SCRIPTED_COORDINATOR_H_
