#include "proto/run_config_epochs.h"

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// Checks the settings that a run with epochs does not have or has with one value alone: its clients take no steps of
// their own.
void CheckGradients(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Train& train = config.train();
  const v1::Optimizer& optimizer = train.optimizer();
  const std::tuple<const char*, bool, const char*> wants[] = {
      {"rounds.mode", config.rounds().mode() == "buffered", "'buffered'"},
      {"train.local_steps", train.local_steps() == 1, "1"},
      {"train.proximal", train.proximal() == 0, "0"},
      {"train.schedule.factor", train.schedule().factor() == 1, "1"},
      {"train.optimizer.name", optimizer.name() == "sgd", "'sgd'"},
      {"train.optimizer.momentum", optimizer.momentum() == 0, "0"},
      {"train.optimizer.clip_norm", optimizer.clip_norm() == 0, "0"},
      {"data.augment", config.data().augment() == "none", "'none'"},
      {"codec.feedback", config.codec().feedback() == "discard", "'discard'"},
      {"codec.positions", config.codec().positions() != "shared", "'auto'"},
      {"downstream.feedback", config.downstream().feedback() != "error_feedback", "'own' or 'none'"},
  };
  for (const auto& [key, fits, value] : wants) {
    if (fits) continue;
    violations->push_back(
        {key, absl::StrCat("server.optimizer = '", config.server().optimizer(),
                           "' takes gradients from clients, one at a time; set ", key, " = ", value)});
  }
}

void CheckModels(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Server& server = config.server();
  const std::string& downstream = config.codec().downstream();
  if (downstream != "dense" && downstream != "low_precision") {
    violations->push_back(
        {"codec.downstream", absl::StrCat("codec.downstream = '", downstream, "' sends steps, and server.optimizer = '",
                                          server.optimizer(), "' sends models; use 'dense' or 'low_precision'")});
  }
  if (downstream == "dense" && (server.precision_loss() > 0 || server.bit_centering())) {
    violations->push_back({server.bit_centering() ? "server.bit_centering" : "server.precision_loss",
                           "server.precision_loss and bit_centering say how models are rounded, and "
                           "codec.downstream = 'dense' sends them whole; use 'low_precision'"});
  }
  const v1::Downstream& settings = config.downstream();
  if (server.precision_loss() > 0 && settings.bits() < 2) {
    violations->push_back(
        {"downstream.bits",
         "downstream.bits is the most that server.precision_loss may choose, from 2 on; set it to 16"});
  }
  if (server.precision_loss() > 0 && (settings.grouping() == "merge_small" || settings.bucket() > 0)) {
    violations->push_back({"server.precision_loss",
                           "server.precision_loss is for one scale a tensor, or one in all; set downstream.bucket = 0 "
                           "and downstream.grouping to 'per_tensor' or 'global'"});
  }
}

}  // namespace

void CheckEpochs(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Server& server = config.server();
  const bool epochs = server.optimizer() == "svrg" || server.optimizer() == "acc_svrg";
  if (epochs != (server.epoch_length() > 0)) {
    violations->push_back(
        {"server.epoch_length", absl::StrCat("server.epoch_length = ", server.epoch_length(),
                                             " does not fit optimizer = '", server.optimizer(),
                                             "'; epochs are those of 'svrg' and 'acc_svrg', and have at "
                                             "least 1 inner iteration")});
    return;
  }
  if (!epochs && (server.precision_loss() > 0 || server.bit_centering())) {
    violations->push_back({server.bit_centering() ? "server.bit_centering" : "server.precision_loss",
                           "server.precision_loss and bit_centering are for optimizer = 'svrg' or 'acc_svrg'; leave "
                           "them out"});
  }
  if (!epochs && config.codec().feedback() == "discard") {
    violations->push_back({"codec.feedback",
                           "codec.feedback = 'discard' loses updates that come late, which only gradients may; use "
                           "'none', or server.optimizer = 'svrg' or 'acc_svrg'"});
  }
  if (!epochs) return;
  CheckGradients(config, violations);
  CheckModels(config, violations);
}

}  // namespace terse
