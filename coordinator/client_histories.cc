#include "coordinator/client_histories.h"

#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "compression/bundle.h"
#include "coordinator/engine_state.h"
#include "coordinator/phases/phase.h"
#include "coordinator/sessions.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

// The client's history as the coordinator has it; nullopt when it is not `theirs`. `heard` is the one to compare: an
// update that was applied while the client could not hear of it is no part of its history yet.
absl::optional<UpdateHistory> Compare(const EngineState& run, HistoryRecord record, bool unheard, Id128 theirs) {
  std::string last;
  if (unheard && !record.log.empty()) {
    last = std::move(record.log.back());
    record.log.pop_back();
  }
  absl::StatusOr<UpdateHistory> history = run.histories.cache->Build(record);
  if (!history.ok() || history->Hash() != theirs) return absl::nullopt;
  if (!last.empty() && !run.model.codec().AddToHistory(last, &*history).ok()) return absl::nullopt;
  return *std::move(history);
}

// There is none for the client in memory, and so what is stored will not go on.
absl::Status GoOnWithout(EngineState& run, const Session& session) {
  run.histories.logs.erase(session.client());
  TERSE_RETURN_IF_ERROR(run.store()->ForgetHistory(session.client()));
  if (run.histories.cache->Distrusts(session.client()) || run.histories.full) return absl::OkStatus();
  run.histories.full = true;
  return run.Note(event::kHistoriesFull, session.client(),
                  "there is no memory for the histories of more clients: their updates come unpacked");
}

}  // namespace

absl::Status HoldHistory(EngineState& run, Session& session, Id128 theirs) {
  if (run.histories.cache == nullptr) return absl::OkStatus();
  if (!run.histories.cache->MayHold(session.client())) return GoOnWithout(run, session);
  TERSE_ASSIGN_OR_RETURN(HistoryRecord record, run.store()->ReadHistory(session.client()));
  HistoryLog log = {record.count(), 0};
  for (const std::string& message : record.log) log.bytes += static_cast<int64_t>(message.size());
  absl::optional<UpdateHistory> history = Compare(run, std::move(record), session.applied_unheard, theirs);
  if (!history.has_value()) {
    // Where the coordinator has none, the client's directory was away for a time, or there was no room for it.
    if (log.messages > 0) {
      TERSE_RETURN_IF_ERROR(run.Note(event::kHistoryDiffers, session.client(),
                                     "what its updates are packed with begins anew, here and there"));
    }
    TERSE_RETURN_IF_ERROR(run.store()->ForgetHistory(session.client()));
    run.journal.Say(session.link, BeginHistory{});
    log = {};
    history.emplace(*run.model.codec().PackedLayout());
  }
  run.histories.logs[session.client()] = log;
  run.histories.cache->Hold(session.client(), *std::move(history));
  return absl::OkStatus();
}

absl::Status ResetClient(EngineState& run, int64_t client) {
  TERSE_RETURN_IF_ERROR(run.store()->RecordReset(client));
  if (run.histories.cache == nullptr) return absl::OkStatus();
  run.histories.cache->Drop(client);
  run.histories.cache->Trust(client);
  return absl::OkStatus();
}

void BeginHistoryAnew(EngineState& run, int64_t client) {
  if (run.histories.cache == nullptr) return;
  const bool held = run.histories.cache->Holds(client);
  run.histories.cache->Drop(client);
  run.histories.cache->Trust(client);
  const auto log = run.histories.logs.find(client);
  if (log != run.histories.logs.end()) log->second = {};
  if (held) run.histories.cache->Hold(client, UpdateHistory(*run.model.codec().PackedLayout()));
}

std::vector<HistoryMessage> MessagesForHistories(const EngineState& run) {
  std::vector<HistoryMessage> messages;
  for (const auto& [client, received] : run.round.updates()) {
    // A bundle has no positions of its own: it is never packed, and no part of a history.
    const absl::string_view bytes = received.update.bytes();
    if (run.histories.logs.contains(client) && !IsBundle(bytes)) messages.push_back({client, bytes});
  }
  return messages;
}

absl::Status AddToHistories(EngineState& run) {
  for (const HistoryMessage& message : MessagesForHistories(run)) {
    HistoryLog& log = run.histories.logs[message.client];
    log.messages += 1;
    log.bytes += static_cast<int64_t>(message.message.size());
    TERSE_RETURN_IF_ERROR(run.histories.cache->Add(message.client, message.message));
  }
  return absl::OkStatus();
}

absl::Status CompactHistoryIfDue(EngineState& run, int64_t client) {
  const auto log = run.histories.logs.find(client);
  if (log == run.histories.logs.end() || 4 * log->second.bytes < run.histories.cache->state_bytes())
    return absl::OkStatus();
  const std::string state = run.histories.cache->StateOf(client);
  if (state.empty()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(run.store()->CompactHistory(client, log->second.messages, state));
  log->second.bytes = 0;
  return absl::OkStatus();
}

absl::Status RefuseMisread(EngineState& run, Session& session) {
  const std::string answer =
      "the packed update does not fit what the coordinator knows of this client; check in again and send it as it is";
  // Nobody asked for it.
  if (!run.histories.Holds(session.client())) {
    return RefuseUpdate(run, session, event::kUpdateRejected, "packed, and the coordinator holds no history of it",
                        answer);
  }
  Refuse(run, session, answer, /*retry=*/true);
  run.histories.cache->Distrust(session.client());
  run.histories.logs.erase(session.client());
  return run.NoteMisbehaviour(event::kUpdateMisread, session.client(),
                              "its updates come unpacked until the coordinator restarts");
}

}  // namespace terse
