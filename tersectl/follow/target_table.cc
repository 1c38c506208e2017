#include "tersectl/follow/target_table.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"
#include "tersectl/follow/checkpoint_target.h"
#include "tersectl/follow/lines_target.h"
#include "tersectl/follow/mlflow_target.h"
#include "tersectl/follow/otlp_target.h"
#include "tersectl/follow/tensorboard_target.h"
#include "tersectl/follow/webhook_target.h"
#include "tersectl/http/http_client.h"

namespace terse {
namespace {

using Targets = std::vector<std::unique_ptr<FollowTarget>>;

constexpr char kSecretVariable[] = "TERSE_WEBHOOK_SECRET";
constexpr int64_t kMostSecretBytes = 4096;

std::function<bool()> GiveUp(const StopSignal* stop) {
  return [stop] { return stop->IsOverdue(); };
}

absl::Status AddLines(const FollowRunsOptions& options, const Terminal& terminal, StopSignal*, Targets* targets) {
  if (options.json) targets->push_back(MakeLinesTarget(terminal));
  return absl::OkStatus();
}

absl::Status AddTensorBoard(const FollowRunsOptions& options, const Terminal&, StopSignal*, Targets* targets) {
  if (!options.tensorboard.empty()) targets->push_back(MakeTensorBoardTarget(options.tensorboard));
  return absl::OkStatus();
}

absl::Status AddMlflow(const FollowRunsOptions& options, const Terminal&, StopSignal* stop, Targets* targets) {
  if (options.mlflow.empty()) return absl::OkStatus();
  MlflowOptions mlflow;
  mlflow.url = options.mlflow;
  mlflow.experiment = options.experiment;
  mlflow.http = MlflowEnvironment();
  mlflow.http.give_up = GiveUp(stop);
  mlflow.state = options.state;
  mlflow.coordinator = options.coordinator.address;
  targets->push_back(MakeMlflowTarget(std::move(mlflow)));
  return absl::OkStatus();
}

absl::Status AddOtlp(const FollowRunsOptions& options, const Terminal&, StopSignal* stop, Targets* targets) {
  if (options.otlp.empty()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(std::vector<std::string> headers, OtlpHeaders());
  targets->push_back(
      MakeOtlpTarget({options.otlp, std::move(headers), options.state, options.otlp_clients, GiveUp(stop)}));
  return absl::OkStatus();
}

absl::StatusOr<std::string> WebhookSecret(const FollowRunsOptions& options) {
  if (options.secret_file.empty()) return EnvironmentValue(kSecretVariable);
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(options.secret_file, kMostSecretBytes));
  const std::string secret(absl::StripAsciiWhitespace(text));
  if (!secret.empty()) return secret;
  return absl::FailedPreconditionError(
      absl::StrCat(options.secret_file, " is empty; write the webhooks' secret to it"));
}

absl::Status AddWebhooks(const FollowRunsOptions& options, const Terminal&, StopSignal* stop, Targets* targets) {
  if (options.webhooks.empty()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::string secret, WebhookSecret(options));
  for (const std::string& url : options.webhooks) {
    targets->push_back(MakeWebhookTarget({url, secret, options.state, absl::Seconds(options.lost_after_seconds),
                                          options.coordinator.address, GiveUp(stop)}));
  }
  return absl::OkStatus();
}

absl::Status AddCheckpoints(const FollowRunsOptions& options, const Terminal&, StopSignal* stop, Targets* targets) {
  if (options.checkpoints.empty()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, OpenObjectStore(options.checkpoints, GiveUp(stop)));
  CheckpointOptions checkpoints;
  checkpoints.every = options.checkpoint_every;
  checkpoints.keep = options.checkpoint_keep;
  checkpoints.connect = [options](const std::string& run) {
    return AdminClient::Make(options.coordinator, absl::Seconds(options.timeout_seconds), run);
  };
  checkpoints.stop = stop;
  targets->push_back(MakeCheckpointTarget(std::move(store), std::move(checkpoints)));
  return absl::OkStatus();
}

// One row for each kind: adds those that the command line names.
constexpr absl::Status (*kKinds[])(const FollowRunsOptions&, const Terminal&, StopSignal*, Targets*) = {
    AddLines, AddTensorBoard, AddMlflow, AddOtlp, AddWebhooks, AddCheckpoints,
};

}  // namespace

absl::StatusOr<Targets> MakeFollowTargets(const FollowRunsOptions& options, const Terminal& terminal,
                                          StopSignal* stop) {
  Targets targets;
  for (const auto& add : kKinds) TERSE_RETURN_IF_ERROR(add(options, terminal, stop, &targets));
  return targets;
}

}  // namespace terse
