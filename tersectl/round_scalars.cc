#include "tersectl/round_scalars.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/compression_rate.h"

namespace terse {

Scalars RoundScalars::Add(const v1::Round& round) {
  dense_bytes_up_ += round.dense_bytes_up();
  payload_bytes_up_ += round.payload_bytes_up();
  wire_bytes_up_ += round.wire_bytes_up();
  dense_bytes_down_ += round.dense_bytes_down();
  wire_bytes_down_ += round.wire_bytes_down();
  Scalars scalars;
  if (round.state() != "committed") return scalars;
  const auto add = [&scalars](std::string name, double value) { scalars.emplace_back(std::move(name), value); };
  if (round.has_accuracy()) add("test/accuracy", round.accuracy());
  if (round.has_test_loss()) add("test/loss", round.test_loss());
  if (round.has_top5()) add("test/top5", round.top5());
  if (round.has_perplexity()) add("test/perplexity", round.perplexity());
  if (round.has_train_loss()) add("train/loss", round.train_loss());
  for (const v1::MetricMean& mean : round.metrics()) {
    add(absl::StrCat(mean.kind() == "training" ? "train" : mean.kind(), "/", mean.name()), mean.mean());
  }
  add("bytes/up_payload", static_cast<double>(round.payload_bytes_up()));
  add("bytes/up_wire", static_cast<double>(round.wire_bytes_up()));
  add("bytes/down_payload", static_cast<double>(round.payload_bytes_down()));
  add("bytes/down_wire", static_cast<double>(round.wire_bytes_down()));
  add("bytes_total/up_wire", static_cast<double>(wire_bytes_up_));
  add("bytes_total/down_wire", static_cast<double>(wire_bytes_down_));
  const auto add_rate = [&add](const char* name, uint64_t dense, uint64_t sent) {
    if (const std::optional<double> rate = CompressionRate(dense, sent); rate.has_value()) add(name, *rate);
  };
  add_rate("compression/up_payload", dense_bytes_up_, payload_bytes_up_);
  add_rate("compression/up_wire", dense_bytes_up_, wire_bytes_up_);
  add_rate("compression/both_wire", dense_bytes_up_ + dense_bytes_down_, wire_bytes_up_ + wire_bytes_down_);
  add("time/round_seconds", static_cast<double>(round.committed_us() - round.opened_us()) / 1e6);
  return scalars;
}

}  // namespace terse
