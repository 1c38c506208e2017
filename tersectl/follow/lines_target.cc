#include "tersectl/follow/lines_target.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "proto/proto_text.h"
#include "tersectl/print.h"
#include "tersectl/round_scalars.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

class LinesTracker : public RunTracker {
 public:
  LinesTracker(const v1::Status& run, const Terminal& terminal)
      : run_(run.run()), lineage_(absl::BytesToHexString(run.lineage())), terminal_(terminal) {
    Print("run", {{"status", ToJson(run)}});
  }

  absl::optional<uint64_t> RoundsAfter() const override { return 0; }
  absl::optional<uint64_t> EventsAfter() const override { return 0; }
  void TakeRound(const v1::Round& round, const v1::TracesReply&) override {
    Json scalars = Json::object();
    for (const auto& [name, value] : scalars_.Add(round)) scalars[name] = value;
    Print("round", {{"round", ToJson(round)}, {"scalars", std::move(scalars)}});
  }
  void TakeEvent(const v1::Event& event) override { Print("event", {{"event", ToJson(event)}}); }
  void TakeEnd(const RunEnd& end) override { Print("end", {{"state", end.state}, {"reason", end.reason}}); }
  absl::Status Deliver() override { return absl::OkStatus(); }

 private:
  void Print(const char* type, const Json& rest) {
    Json line = {{"type", type}, {"run", run_}, {"lineage", lineage_}};
    line.update(rest);
    PrintJsonLine(line, terminal_);
  }

  const std::string run_, lineage_;
  const Terminal terminal_;
  RoundScalars scalars_;
};

class LinesTarget : public FollowTarget {
 public:
  explicit LinesTarget(const Terminal& terminal) : terminal_(terminal) {}
  std::string name() const override { return "standard output"; }
  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool is_new) override {
    return std::make_unique<LinesTracker>(run, terminal_);
  }

 private:
  const Terminal terminal_;
};

}  // namespace

std::unique_ptr<FollowTarget> MakeLinesTarget(const Terminal& terminal) {
  return std::make_unique<LinesTarget>(terminal);
}

}  // namespace terse
