// The kinds of a run's events, as the table `events` and everything that shows events name them. A kind is part of what
// programs read: it is never renamed.
#ifndef TERSE_STORAGE_EVENT_KINDS_H_
#define TERSE_STORAGE_EVENT_KINDS_H_

namespace terse {
namespace event {

// The run.
inline constexpr char kRunCreated[] = "run_created";
inline constexpr char kRunPaused[] = "run_paused";
inline constexpr char kRunResumed[] = "run_resumed";
inline constexpr char kStopRequested[] = "stop_requested";
inline constexpr char kRunEnded[] = "run_ended";
inline constexpr char kRunSuspended[] = "run_suspended";      // its disk was in trouble, and it is served again
inline constexpr char kLineageStarted[] = "lineage_started";  // it was restored from a backup
inline constexpr char kRoundWaits[] = "round_waits";
inline constexpr char kRoundAborted[] = "round_aborted";
inline constexpr char kEvaluationFailed[] = "evaluation_failed";
inline constexpr char kCheckpointDamaged[] = "checkpoint_damaged";
inline constexpr char kHistoriesFull[] = "histories_full";

// One client each.
inline constexpr char kClientJoined[] = "client_joined";
inline constexpr char kClientLeft[] = "client_left";
inline constexpr char kClientFailed[] = "client_failed";    // it met an error, and said why
inline constexpr char kClientRefused[] = "client_refused";  // it may not take part
inline constexpr char kClientSetAside[] = "client_set_aside";
inline constexpr char kClientReadmitted[] = "client_readmitted";
inline constexpr char kResidualLost[] = "residual_lost";
inline constexpr char kModelDrift[] = "model_drift";
inline constexpr char kHistoryDiffers[] = "history_differs";
inline constexpr char kMessageRefused[] = "message_refused";
inline constexpr char kUpdateLate[] = "update_late";
inline constexpr char kUpdateTurnedAway[] = "update_turned_away";
inline constexpr char kUpdateRejected[] = "update_rejected";
inline constexpr char kUpdateConflict[] = "update_conflict";
inline constexpr char kUpdateMisread[] = "update_misread";

}  // namespace event
}  // namespace terse

#endif  // TERSE_STORAGE_EVENT_KINDS_H_
