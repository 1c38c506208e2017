#include "coordinator/rpc/client_budgets.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr double kUsPerMinute = 60e6;
}  // namespace

void ClientBudgets::Refill(int64_t now_us, Account* account) const {
  const auto calls = static_cast<double>(options_.calls_per_minute),
             bytes = static_cast<double>(options_.bytes_per_minute);
  // A clock that was set back refills nothing.
  const auto passed = static_cast<double>(std::max<int64_t>(0, now_us - account->updated_us));
  account->calls = std::min(calls, account->calls + calls * passed / kUsPerMinute);
  account->bytes = std::min(bytes, account->bytes + bytes * passed / kUsPerMinute);
  account->updated_us = now_us;
}

ClientBudgets::Account& ClientBudgets::Find(const std::string& client) {
  const int64_t now_us = clock_->MonotonicMicros();
  if (accounts_.size() >= sweep_at_) Sweep(now_us);
  const auto [it, is_new] = accounts_.try_emplace(client);
  Account& account = it->second;
  if (is_new) {
    account.calls = static_cast<double>(options_.calls_per_minute);
    account.bytes = static_cast<double>(options_.bytes_per_minute);
    account.updated_us = now_us;
  }
  Refill(now_us, &account);
  return account;
}

void ClientBudgets::Sweep(int64_t now_us) {
  for (auto it = accounts_.begin(); it != accounts_.end();) {
    Account& account = it->second;
    Refill(now_us, &account);
    const bool is_full = account.open == 0 && account.calls >= static_cast<double>(options_.calls_per_minute) &&
                         account.bytes >= static_cast<double>(options_.bytes_per_minute);
    const auto here = it++;
    if (is_full) accounts_.erase(here);
  }
  sweep_at_ = std::max<size_t>(1024, 2 * accounts_.size());
}

absl::Status ClientBudgets::CheckRoom(const Account& account, bool is_session) const {
  if (account.open >= options_.calls_at_once) {
    return absl::UnavailableError(absl::StrCat("this client has ", account.open, " calls open, of ",
                                               options_.calls_at_once, "; end one of them"));
  }
  if (is_session && account.sessions >= options_.sessions_at_once) {
    return absl::UnavailableError(absl::StrCat("this client has ", account.sessions, " sessions open, of ",
                                               options_.sessions_at_once, "; end one of them"));
  }
  return absl::OkStatus();
}

absl::Status ClientBudgets::BeginCall(const std::string& client, bool is_session) {
  absl::MutexLock lock(&mutex_);
  Account& account = Find(client);
  TERSE_RETURN_IF_ERROR(CheckRoom(account, is_session));
  if (account.calls < 1) {
    const double wait_us = (1 - account.calls) / static_cast<double>(options_.calls_per_minute) * kUsPerMinute;
    return absl::UnavailableError(absl::StrCat("this client's budget of ", options_.calls_per_minute,
                                               " calls a minute is used up; there is more in ",
                                               static_cast<int64_t>(std::ceil(wait_us / 1e6)), " s"));
  }
  account.calls -= 1;
  return absl::OkStatus();
}

absl::Status ClientBudgets::Opened(const std::string& client, bool is_session) {
  absl::MutexLock lock(&mutex_);
  Account& account = Find(client);
  TERSE_RETURN_IF_ERROR(CheckRoom(account, is_session));
  ++account.open;
  account.sessions += is_session;
  return absl::OkStatus();
}

void ClientBudgets::Ended(const std::string& client, bool is_session) {
  absl::MutexLock lock(&mutex_);
  Account& account = Find(client);
  --account.open;
  account.sessions -= is_session;
}

absl::Duration ClientBudgets::Spend(const std::string& client, int64_t bytes) {
  if (options_.bytes_per_minute == 0) return absl::ZeroDuration();
  absl::MutexLock lock(&mutex_);
  Account& account = Find(client);
  account.bytes -= static_cast<double>(bytes);
  if (account.bytes >= 0) return absl::ZeroDuration();
  return absl::Microseconds(-account.bytes / static_cast<double>(options_.bytes_per_minute) * kUsPerMinute);
}

size_t ClientBudgets::size() const {
  absl::MutexLock lock(&mutex_);
  return accounts_.size();
}

}  // namespace terse
