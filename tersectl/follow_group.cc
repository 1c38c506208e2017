#include "tersectl/follow_group.h"

#include <string>

#include "core/cli/checks.h"
#include "tersectl/http/http_client.h"

namespace terse {
namespace {

// The address of a server, without a secret in it.
CLI::Validator Url() {
  return CLI::Validator([](const std::string& url) { return std::string(CheckUrl(url).message()); }, "");
}

}  // namespace

void AddFollow(CLI::App& app, Invocation* invocation) {
  const auto [follow, places] =
      AddRemote(app, "follow", "Hand the news of a run, or of all runs, to other tools while they go on", FollowRuns,
                invocation, kFollowCodes);
  follow->add_option("--tensorboard", places->tensorboard,
                     "Folder of event files for TensorBoard, one below it per run");
  follow->add_option("--mlflow", places->mlflow, "URL of an MLflow tracking server")->check(Url());
  follow->add_option("--experiment", places->experiment, "MLflow's experiment")
      ->envname("MLFLOW_EXPERIMENT_NAME")
      ->capture_default_str();
  CLI::Option* const otlp =
      follow->add_option("--otlp", places->otlp, "URL of an OpenTelemetry collector (OTLP over HTTP): a trace a round")
          ->check(Url());
  follow->add_option("--otlp-clients", places->otlp_clients, "Clients in a trace, the slowest")
      ->check(WholeNumber(1, 10000))
      ->needs(otlp)
      ->capture_default_str();
  CLI::Option* const state = follow->add_option(
      "--state", places->state,
      "Folder for what the next start needs to know: what webhooks and collector were told, and the runs in MLflow");
  CLI::Option* const webhook =
      follow->add_option("--webhook", places->webhooks, "URL that is called when something happens; may be repeated")
          ->envname("TERSE_WEBHOOK")
          ->allow_extra_args(false)
          ->delimiter(' ')
          ->check(Url())
          ->needs(state);
  follow
      ->add_option("--secret", places->secret_file,
                   "File with the secret that signs the calls, or TERSE_WEBHOOK_SECRET")
      ->needs(webhook);
  follow->add_option("--lost-after", places->lost_after_seconds, "Seconds after which a client that went away is lost")
      ->check(Number(0))
      ->needs(webhook)
      ->capture_default_str();
  CLI::Option* const checkpoints =
      follow->add_option("--checkpoints", places->checkpoints,
                         "Folder or s3://BUCKET/PREFIX for the model, as safetensors; needs an operator's rights");
  follow->add_option("--checkpoint-every", places->checkpoint_every, "Versions between two checkpoints")
      ->check(WholeNumber(1, 100'000'000))
      ->needs(checkpoints)
      ->capture_default_str();
  follow->add_option("--checkpoint-keep", places->checkpoint_keep, "Checkpoints of a run that are kept; 0: all")
      ->check(WholeNumber(0, 1'000'000))
      ->needs(checkpoints)
      ->capture_default_str();
  follow
      ->add_option("--patience", places->patience_seconds,
                   "Seconds that the coordinator may be away, and a place at the run's end; default: 30, with all runs "
                   "for ever")
      ->check(Number(0));
}

}  // namespace terse
