#include "coordinator/rpc/logged_store.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/log_components.h"
#include "core/log/log.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

constexpr const char* kTroubles[] = {
    event::kClientFailed,   event::kClientRefused, event::kClientSetAside, event::kEvaluationFailed,
    event::kMessageRefused, event::kModelDrift,    event::kResidualLost,   event::kRoundAborted,
    event::kUpdateConflict, event::kUpdateMisread, event::kUpdateRejected,
};

}  // namespace

LoggedStore::LoggedStore(std::string run, std::unique_ptr<RunStore> store)
    : ForwardingStore(std::move(store)), run_(std::move(run)) {}

absl::Status LoggedStore::OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                                    const absl::optional<RoundPlan>& plan) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::OpenRound(round, base_version, now_us, plan));
  LogOpened(round, base_version);
  return absl::OkStatus();
}

absl::Status LoggedStore::CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                                     absl::Span<const RefusedUpdate> refused) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::CloseRound(round, chosen, now_us, refused));
  int64_t bytes = 0;
  for (const ChosenUpdate& update : chosen) bytes += update.payload_bytes;
  LogRound(round, absl::StrCat("round closed with ", chosen.size(), " updates, ", bytes, " bytes; ", refused.size(),
                               " refused"));
  return absl::OkStatus();
}

absl::Status LoggedStore::CommitRound(const Commit& commit, bool open_next) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::CommitRound(commit, open_next));
  const int64_t version = commit.base_version + 1;
  LogRound(commit.round, absl::StrCat("round committed as version ", version, ", ", commit.downstream.size(),
                                      " bytes for each client"));
  if (open_next) LogOpened(commit.round + 1, version);
  return absl::OkStatus();
}

absl::Status LoggedStore::SetEvaluation(int64_t round, const Evaluation& evaluation) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::SetEvaluation(round, evaluation));
  const std::string accuracy =
      evaluation.accuracy.has_value() ? absl::StrFormat("accuracy %.4f, ", *evaluation.accuracy) : "";
  LogRound(round, absl::StrCat("round evaluated: ", accuracy, absl::StrFormat("loss %.4g", evaluation.loss)));
  return absl::OkStatus();
}

absl::Status LoggedStore::Around(absl::string_view, absl::FunctionRef<absl::Status()> call) { return call(); }

void LoggedStore::LogOpened(int64_t round, int64_t base_version) {
  LogRound(round, absl::StrCat("round opened at version ", base_version));
}

void LoggedStore::LogRound(int64_t round, std::string message) {
  if (!IsLogged(LogLevel::kDebug, kRunLog)) return;
  OnceDurable([this, round, message = std::move(message)] { Log(LogLevel::kDebug, kRunLog, {run_, round}, message); });
}

void LoggedStore::LogEvent(const EventRecord& event) {
  const LogLevel level = absl::c_linear_search(kTroubles, event.kind) ? LogLevel::kWarn : LogLevel::kInfo;
  if (!IsLogged(level, kRunLog)) return;
  std::string name = event.client_name;
  if (name.empty() && event.client >= 0) {
    // A client that was not let in. Where the disk is in trouble, the index has to do.
    const absl::StatusOr<ClientRecord> client = GetClient(event.client);
    if (client.ok()) name = client->name;
  }
  Log(level, kRunLog, {run_, event.round, name, event.client}, absl::StrCat(event.kind, ": ", event.detail));
}

}  // namespace terse
