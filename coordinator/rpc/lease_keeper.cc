#include "coordinator/rpc/lease_keeper.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "coordinator/log_components.h"
#include "core/log/log.h"
#include "core/status.h"

namespace terse {
namespace {

// Attempts to take a lease, and to renew it, while it lasts.
constexpr int kLooks = 10;
constexpr int kRenewals = 3;

}  // namespace

absl::Status AwaitLease(StoreLease& lease, absl::FunctionRef<bool(absl::Duration)> sleep,
                        absl::FunctionRef<void(const std::string& holder)> on_wait) {
  std::string waited_for;
  do {
    const absl::StatusOr<std::string> holder = lease.Take();
    if (!holder.ok() && !absl::IsUnavailable(holder.status())) return holder.status();
    if (holder.ok() && holder->empty()) return absl::OkStatus();
    std::string now = holder.ok() ? *holder : std::string(holder.status().message());
    if (now == waited_for) continue;
    waited_for = std::move(now);
    if (holder.ok()) {
      on_wait(waited_for);
    } else {
      Log(LogLevel::kWarn, kServerLog, {}, absl::StrCat(waited_for, "; trying again"));
    }
  } while (sleep(lease.duration() / kLooks));
  return absl::CancelledError("stopped while another coordinator serves the runs");
}

LeaseKeeper::LeaseKeeper(StoreLease* lease, std::function<void(const absl::Status&)> on_lost)
    : lease_(lease), on_lost_(std::move(on_lost)), thread_([this] { Run(); }) {}

LeaseKeeper::~LeaseKeeper() {
  {
    absl::MutexLock lock(&mutex_);
    stops_ = true;
  }
  thread_.join();
  lease_->Release();
}

void LeaseKeeper::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stops_), lease_->duration() / kRenewals)) return;
    }
    const absl::Status renewed = lease_->Renew();
    // While nobody can reach the store, nobody takes it.
    if (renewed.ok() || absl::IsUnavailable(renewed)) continue;
    on_lost_(renewed);
    return;
  }
}

}  // namespace terse
