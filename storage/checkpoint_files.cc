#include "storage/checkpoint_files.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/weights_file.h"

namespace terse {
namespace {

// The version in the name of a checkpoint's file; false for any other name.
bool ParseName(absl::string_view name, int64_t* version) {
  absl::ConsumeSuffix(&name, kTemporarySuffix);
  if (!absl::ConsumeSuffix(&name, ".ckpt") && !absl::ConsumeSuffix(&name, ".state")) return false;
  if (name.size() < 10 || name.find_first_not_of("0123456789") != absl::string_view::npos) return false;
  return absl::SimpleAtoi(name, version);
}

std::string ServerStatePath(const std::string& run_directory, int64_t version) {
  return absl::StrCat(CheckpointsDirectory(run_directory), "/", ServerStateName(version));
}

}  // namespace

std::string CheckpointsDirectory(const std::string& run_directory) {
  return absl::StrCat(run_directory, "/checkpoints");
}
std::string CheckpointName(int64_t version) { return absl::StrFormat("%010d.ckpt", version); }
std::string ServerStateName(int64_t version) { return absl::StrFormat("%010d.state", version); }
std::string CheckpointPath(const std::string& run_directory, int64_t version) {
  return absl::StrCat(CheckpointsDirectory(run_directory), "/", CheckpointName(version));
}

bool IsCheckpointName(absl::string_view name) {
  int64_t version = 0;
  return ParseName(name, &version);
}

absl::Status RemoveOtherCheckpoints(FileSystem& files, const std::string& run_directory,
                                    const std::set<int64_t>& versions) {
  const std::string directory = CheckpointsDirectory(run_directory);
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  for (const std::string& name : names) {
    int64_t version = 0;
    if (!ParseName(name, &version)) continue;
    const bool is_kept =
        versions.count(version) > 0 && (name == CheckpointName(version) || name == ServerStateName(version));
    if (!is_kept) TERSE_RETURN_IF_ERROR(files.Remove(absl::StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> JoinCheckpoint(const RecordedCheckpoint& recorded, absl::string_view weights,
                                          absl::string_view weights_place, absl::string_view server_state,
                                          absl::string_view state_place) {
  absl::StatusOr<Checkpoint> checkpoint = ParseCheckpoint(weights);
  if (!checkpoint.ok()) return Annotate(checkpoint.status(), weights_place);
  if (checkpoint->version != recorded.version || checkpoint->model_hash != recorded.model_hash) {
    return absl::DataLossError(absl::StrCat(weights_place, " is not the checkpoint that the database recorded"));
  }
  if (recorded.bytes.server_state == 0) return checkpoint;
  absl::StatusOr<WeightsFile> state = ParseWeights(kServerStateMagic, server_state);
  if (!state.ok()) return Annotate(state.status(), state_place);
  if (state->version != recorded.version || state->id != recorded.model_hash) {
    return absl::DataLossError(
        absl::StrCat(state_place, " is not the state that belongs to checkpoint ", recorded.version));
  }
  checkpoint->server_state = std::move(state->weights);
  return checkpoint;
}

absl::Status NoWholeCheckpoint(absl::string_view place, absl::string_view reason, absl::string_view remedy) {
  return absl::DataLossError(absl::StrCat(place, " holds no whole checkpoint: ", reason, remedy));
}

absl::StatusOr<CheckpointBytes> CheckpointFiles::WriteFiles(const CheckpointView& checkpoint) {
  CheckpointBytes sizes;
  if (!checkpoint.server_state.empty()) {
    const WeightsBytes state(kServerStateMagic, checkpoint.version, checkpoint.model_hash, checkpoint.server_state);
    TERSE_RETURN_IF_ERROR(ReplaceFile(files_, ServerStatePath(directory_, checkpoint.version), state.parts()));
    sizes.server_state = static_cast<int64_t>(state.size());
    TERSE_FAILPOINT("coordinator.checkpoint.state_written");
  }
  const WeightsBytes weights(kCheckpointMagic, checkpoint.version, checkpoint.model_hash, checkpoint.weights);
  TERSE_RETURN_IF_ERROR(ReplaceFile(files_, CheckpointPath(directory_, checkpoint.version), weights.parts()));
  sizes.weights = static_cast<int64_t>(weights.size());
  return sizes;
}

absl::StatusOr<Checkpoint> CheckpointFiles::LoadFiles(const RecordedCheckpoint& recorded) {
  const std::string path = CheckpointPath(directory_, recorded.version);
  const std::string state_path = ServerStatePath(directory_, recorded.version);
  TERSE_ASSIGN_OR_RETURN(const std::string weights, files_.Read(path, recorded.bytes.weights));
  std::string state;
  if (recorded.bytes.server_state > 0) {
    TERSE_ASSIGN_OR_RETURN(state, files_.Read(state_path, recorded.bytes.server_state));
  }
  return JoinCheckpoint(recorded, weights, path, state, state_path);
}

absl::StatusOr<CheckpointBytes> CheckpointFiles::Write(StoreTransactions&, const CheckpointView& checkpoint) {
  return WriteFiles(checkpoint);
}

absl::StatusOr<Checkpoint> CheckpointFiles::Load(StoreTransactions&, const RecordedCheckpoint& recorded) {
  return LoadFiles(recorded);
}

absl::Status CheckpointFiles::Remove(StoreTransactions&, int64_t version) {
  TERSE_RETURN_IF_ERROR(files_.Remove(CheckpointPath(directory_, version)));
  return files_.Remove(ServerStatePath(directory_, version));
}

absl::StatusOr<std::string> CheckpointFiles::FileOf(StoreTransactions&, const RecordedCheckpoint& recorded) {
  return CheckpointPath(directory_, recorded.version);
}

}  // namespace terse
