// Runs in an MLflow tracking server.
#ifndef TERSE_TERSECTL_FOLLOW_MLFLOW_TARGET_H_
#define TERSE_TERSECTL_FOLLOW_MLFLOW_TARGET_H_

#include <memory>
#include <string>

#include "tersectl/follow/target.h"
#include "tersectl/http/http_client.h"

namespace terse {

struct MlflowOptions {
  std::string url;
  std::string experiment = "terse";
  HttpClient::Options http;
  std::string state;        // folder of notes of the runs that are followed; empty: there are none
  std::string coordinator;  // its address, to which the notes belong
};

// Logs each run as one of the experiment, which is made when it is not there, over MLflow's REST API (2.0): the run
// file's keys as parameters, those that are not at their default first; each committed round's scalars
// (round_scalars.h) as metrics, with the round's id as the step and the time of its commit; RUNNING, then FINISHED,
// KILLED for a run that was stopped or deleted, FAILED while it is down; at the end the tag `terse.end` with how it
// ended. It finds a run again by the tag `terse.lineage` and logs what is newer than the newest step of each metric.
// With notes it also ends the runs that were deleted while no process followed them. A run that was taken for deleted,
// and that the coordinator has, goes on.
std::unique_ptr<FollowTarget> MakeMlflowTarget(MlflowOptions options);

// Returns the name under which MLflow takes a metric: it knows letters, digits and _ - . : / and space, and no empty
// and dot parts of a path.
std::string MlflowMetricName(const std::string& name);

// The authentication that MLflow's own client takes from the environment: MLFLOW_TRACKING_USERNAME and _PASSWORD, or
// _TOKEN; _SERVER_CERT_PATH; _INSECURE_TLS ("true" or "1").
HttpClient::Options MlflowEnvironment();

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_MLFLOW_TARGET_H_
