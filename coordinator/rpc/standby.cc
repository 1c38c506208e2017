#include "coordinator/rpc/standby.h"

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// Ends a call, and goes away with it.
class StandbyRefusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit StandbyRefusal(const std::string& why) { Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, why)); }
  void OnDone() override { delete this; }
};

}  // namespace

void StandbyService::SetHolder(const std::string& holder) {
  absl::MutexLock lock(&mutex_);
  holder_ = holder;
}

grpc::ServerGenericBidiReactor* StandbyService::CreateReactor(grpc::GenericCallbackServerContext*) {
  absl::MutexLock lock(&mutex_);
  return new StandbyRefusal(absl::StrCat("this process waits to serve; another one serves the runs: ", holder_));
}

}  // namespace terse
