#include "proto/run_config_epochs.h"

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// Checks the settings that a run with epochs does not have or has with one value alone: its clients take no steps of
// their own.
std::optional<ConfigViolation> CheckGradients(const v1::RunConfig& config) {
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
    return ConfigViolation{key, absl::StrCat("server.optimizer = '", config.server().optimizer(),
                                             "' takes gradients from clients, one at a time; set ", key, " = ", value)};
  }
  return std::nullopt;
}

std::optional<ConfigViolation> CheckModels(const v1::RunConfig& config) {
  const v1::Server& server = config.server();
  const std::string& downstream = config.codec().downstream();
  if (downstream != "dense" && downstream != "low_precision") {
    return ConfigViolation{"codec.downstream",
                           absl::StrCat("codec.downstream = '", downstream, "' sends steps, and server.optimizer = '",
                                        server.optimizer(), "' sends models; use 'dense' or 'low_precision'")};
  }
  if (downstream == "dense" && (server.precision_loss() > 0 || server.bit_centering())) {
    return ConfigViolation{server.bit_centering() ? "server.bit_centering" : "server.precision_loss",
                           "server.precision_loss and bit_centering say how models are rounded, and "
                           "codec.downstream = 'dense' sends them whole; use 'low_precision'"};
  }
  const v1::Downstream& settings = config.downstream();
  if (server.precision_loss() > 0 && settings.bits() < 2) {
    return ConfigViolation{
        "downstream.bits",
        "downstream.bits is the most that server.precision_loss may choose, from 2 on; set it to 16"};
  }
  if (server.precision_loss() > 0 && (settings.grouping() == "merge_small" || settings.bucket() > 0)) {
    return ConfigViolation{"server.precision_loss",
                           "server.precision_loss is for one scale a tensor, or one in all; set downstream.bucket = 0 "
                           "and downstream.grouping to 'per_tensor' or 'global'"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConfigViolation> CheckEpochs(const v1::RunConfig& config) {
  const v1::Server& server = config.server();
  const bool epochs = server.optimizer() == "svrg" || server.optimizer() == "acc_svrg";
  if (epochs != (server.epoch_length() > 0)) {
    return ConfigViolation{
        "server.epoch_length",
        absl::StrCat("server.epoch_length = ", server.epoch_length(), " does not fit optimizer = '", server.optimizer(),
                     "'; epochs are those of 'svrg' and 'acc_svrg', and have at "
                     "least 1 inner iteration")};
  }
  if (!epochs && (server.precision_loss() > 0 || server.bit_centering())) {
    return ConfigViolation{server.bit_centering() ? "server.bit_centering" : "server.precision_loss",
                           "server.precision_loss and bit_centering are for optimizer = 'svrg' or 'acc_svrg'; leave "
                           "them out"};
  }
  if (!epochs && config.codec().feedback() == "discard") {
    return ConfigViolation{"codec.feedback",
                           "codec.feedback = 'discard' loses updates that come late, which only gradients may; use "
                           "'none', or server.optimizer = 'svrg' or 'acc_svrg'"};
  }
  if (!epochs) return std::nullopt;
  std::optional<ConfigViolation> violation = CheckGradients(config);
  return violation.has_value() ? violation : CheckModels(config);
}

}  // namespace terse
