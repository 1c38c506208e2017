#include "tersectl/follow/webhook_target.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "storage/event_kinds.h"
#include "tersectl/follow/position_file.h"
#include "tersectl/http/http_client.h"
#include "tersectl/print.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

// Between two looks at the coordinator no more than this counts as time in which a client could have come back.
constexpr absl::Duration kLongestLook = absl::Seconds(2);

// The run's own events that are sent as they are, under this name.
constexpr struct {
  const char* kind;
  const char* sent_as;
} kSentEvents[] = {
    {event::kRoundAborted, "round_aborted"},
    {event::kRunPaused, "run_paused"},
    {event::kRunSuspended, "run_recovered"},
};

std::string WebhookTime(int64_t unix_us) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(unix_us), absl::UTCTimeZone());
}

// A client whose connection has ended.
struct Left {
  v1::Event event;
  absl::Duration waited = absl::ZeroDuration();  // since then, while the coordinator was there
};

// How far the server at the URL has heard of the run, as in the position file.
struct WebhookPosition {
  uint64_t event = kOnlyNewEvents;
  std::string trouble;                    // "run_suspended" or "run_down", while it is so; else empty
  std::map<int64_t, Left> left;           // by client
  std::map<int64_t, std::string> failed;  // what a client said before it left
  bool ended = false;                     // the run's end was told
  std::string run, coordinator;           // its name, and the address of the coordinator that has it
};

Json PositionJson(const WebhookPosition& position) {
  Json left = Json::array();
  for (const auto& [client, one] : position.left) {
    left.push_back({{"id", one.event.id()},
                    {"client", client},
                    {"name", one.event.client_name()},
                    {"round", one.event.round()},
                    {"time_us", one.event.time_us()},
                    {"detail", one.event.detail()},
                    {"waited_ms", absl::ToInt64Milliseconds(one.waited)}});
  }
  return {{"event", position.event}, {"trouble", position.trouble}, {"left", std::move(left)},
          {"ended", position.ended}, {"run", position.run},         {"coordinator", position.coordinator}};
}

absl::StatusOr<WebhookPosition> ReadPosition(const PositionFile& file) {
  TERSE_ASSIGN_OR_RETURN(const Json json, file.Read());
  WebhookPosition position;
  if (json.empty()) return position;
  try {
    position.event = json.at("event").get<uint64_t>();
    position.trouble = json.at("trouble").get<std::string>();
    // That of an earlier release has none of these.
    position.ended = json.value("ended", false);
    position.run = json.value("run", "");
    position.coordinator = json.value("coordinator", "");
    for (const Json& one : json.at("left")) {
      Left left;
      left.event.set_id(one.at("id").get<uint64_t>());
      left.event.set_client(one.at("client").get<int64_t>());
      left.event.set_client_name(one.at("name").get<std::string>());
      left.event.set_round(one.at("round").get<uint64_t>());
      left.event.set_time_us(one.at("time_us").get<int64_t>());
      left.event.set_detail(one.at("detail").get<std::string>());
      left.waited = absl::Milliseconds(one.at("waited_ms").get<int64_t>());
      position.left[left.event.client()] = std::move(left);
    }
  } catch (const Json::exception& error) {
    return file.Damaged(error.what());
  }
  return position;
}

// A request that is to be made.
struct WebhookCall {
  std::string event, id, body;
};

class WebhookTracker : public RunTracker {
 public:
  WebhookTracker(const WebhookOptions* options, HttpClient* http, const v1::Status& run, PositionFile file,
                 WebhookPosition position)
      : options_(options),
        http_(http),
        run_(run.run()),
        lineage_(absl::BytesToHexString(run.lineage())),
        file_(std::move(file)),
        position_(std::move(position)) {
    position_.run = run_;
    position_.coordinator = options_->coordinator;
  }

  absl::optional<uint64_t> EventsAfter() const override { return position_.event; }
  void SkipEventsTo(uint64_t id) override {
    position_.event = id;
    changed_ = true;
  }

  void TakeRun(const v1::Run& run, absl::Time now) override {
    const absl::Duration passed = std::min(kLongestLook, now - std::min(now, looked_));
    for (auto& [client, left] : position_.left) left.waited += passed;
    looked_ = now;
    const std::string trouble = absl::StartsWith(run.phase(), "suspended") ? "run_suspended"
                                : absl::StartsWith(run.phase(), "down")    ? "run_down"
                                                                           : "";
    if (trouble == position_.trouble) return;
    position_.trouble = trouble;
    changed_ = true;
    if (trouble.empty()) return;
    v1::Event event;
    event.set_time_us(absl::ToUnixMicros(now));
    event.set_client(-1);
    event.set_detail(run.phase().substr(std::min(run.phase().size(), run.phase().find(": ") + 2)));
    Queue(trouble, event, absl::StrCat(event.time_us()));
  }

  void TakeEvent(const v1::Event& event) override {
    position_.event = event.id();
    for (const auto& [kind, sent_as] : kSentEvents) {
      if (event.kind() == kind) Queue(sent_as, event, absl::StrCat(event.id()));
    }
    if (event.kind() == event::kRunEnded) {
      ended_ = event;
      position_.left.clear();
    }
    if (event.kind() == event::kClientFailed) position_.failed[event.client()] = event.detail();
    if (event.kind() == event::kClientJoined) {
      position_.failed.erase(event.client());
      changed_ = position_.left.erase(event.client()) > 0 || changed_;
    }
    if (event.kind() == event::kClientLeft && ended_.id() == 0) {
      position_.left[event.client()].event = event;
      changed_ = true;
    }
  }

  void TakeEnd(const RunEnd& end) override {
    position_.left.clear();
    position_.ended = changed_ = true;
    deleted_ = end.state == "deleted";
    if (deleted_) {
      v1::Event event;
      event.set_time_us(absl::ToUnixMicros(absl::Now()));
      event.set_client(-1);
      event.set_detail(end.reason);
      Queue("run_deleted", event, "deleted");
    } else if (ended_.id() != 0) {
      Queue(end.state == "stopped" ? "run_stopped" : "run_ended", ended_, absl::StrCat(ended_.id()));
    }
  }

  absl::Status Deliver() override {
    QueueLost();
    while (!calls_.empty()) {
      TERSE_RETURN_IF_ERROR(Post(calls_.front()));
      calls_.pop_front();
      changed_ = true;
    }
    if (!changed_) return absl::OkStatus();
    if (deleted_) return Noted(file_.Remove());  // nothing comes after that
    WebhookPosition reached = position_;
    // Whether it finished or was stopped is not known yet, so that the end has not been told.
    if (ended_.id() != 0 && !position_.ended) reached.event = std::min(reached.event, ended_.id() - 1);
    return Noted(file_.Write(PositionJson(reached)));
  }

 private:
  // Whether the position file says what changed; where not, the next Deliver tries again.
  absl::Status Noted(const absl::Status& status) {
    changed_ = !status.ok();
    return status;
  }

  void Queue(const std::string& event, const v1::Event& of, const std::string& number) {
    const std::string id = absl::StrCat(lineage_, "-", event, "-", number);
    const Json body = {{"event", event},
                       {"run", run_},
                       {"lineage", lineage_},
                       {"round", of.round() == 0 ? Json() : Json(of.round())},
                       {"client", of.client() < 0 ? Json() : Json(of.client_name())},
                       {"detail", of.detail()},
                       {"time", WebhookTime(of.time_us())},
                       {"id", id}};
    calls_.push_back({event, id, JsonText(body, -1)});
  }

  void QueueLost() {
    for (auto it = position_.left.begin(); it != position_.left.end();) {
      if (it->second.waited < options_->lost_after) {
        ++it;
        continue;
      }
      v1::Event event = it->second.event;
      const auto said = position_.failed.find(it->first);
      event.set_detail(absl::StrCat("its connection ended, and it did not come back within ",
                                    absl::FormatDuration(options_->lost_after),
                                    said == position_.failed.end() ? "" : absl::StrCat("; it said: ", said->second)));
      Queue("client_lost", event, absl::StrCat(event.id()));
      position_.failed.erase(it->first);
      it = position_.left.erase(it);
    }
  }

  absl::Status Post(const WebhookCall& call) {
    std::vector<std::string> headers = {absl::StrCat("X-Terse-Event: ", call.event),
                                        absl::StrCat("X-Terse-Delivery: ", call.id)};
    if (!options_->secret.empty()) {
      headers.push_back(absl::StrCat("X-Terse-Signature: ", WebhookSignature(options_->secret, call.body)));
    }
    TERSE_ASSIGN_OR_RETURN(const HttpResult reply, http_->Post(options_->url, call.body, headers));
    return reply.status >= 200 && reply.status < 300 ? absl::OkStatus() : HttpFailure(options_->url, reply);
  }

  const WebhookOptions* const options_;
  HttpClient* const http_;
  const std::string run_, lineage_;
  const PositionFile file_;
  WebhookPosition position_;  // with what was taken
  // Since the position file was written. It is at the start, so that the next process finds where this one began.
  bool changed_ = true;
  std::deque<WebhookCall> calls_;  // not made yet
  v1::Event ended_;                // the run's end
  bool deleted_ = false;           // the coordinator has it no more
  absl::Time looked_ = absl::InfiniteFuture();
};

class WebhookTarget : public FollowTarget {
 public:
  explicit WebhookTarget(WebhookOptions options) : options_(std::move(options)), http_(HttpOptions(options_)) {}

  std::string name() const override { return absl::StrCat("webhook ", ShownUrl(options_.url)); }

  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool is_new) override {
    PositionFile file(options_.state, kKind, options_.url, absl::BytesToHexString(run.lineage()));
    TERSE_ASSIGN_OR_RETURN(WebhookPosition position, ReadPosition(file));
    if (position.event == kOnlyNewEvents && is_new) position.event = 0;
    return std::make_unique<WebhookTracker>(&options_, &http_, run, std::move(file), std::move(position));
  }

  absl::StatusOr<std::vector<EarlierRun>> FindEarlier(const std::set<std::string>& served) override {
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> lineages,
                           PositionFile::Lineages(options_.state, kKind, options_.url));
    std::vector<EarlierRun> earlier;
    for (const std::string& lineage : lineages) {
      if (served.count(lineage) > 0) continue;
      PositionFile file(options_.state, kKind, options_.url, lineage);
      TERSE_ASSIGN_OR_RETURN(WebhookPosition position, ReadPosition(file));
      if (position.coordinator != options_.coordinator) continue;
      if (position.ended) {
        TERSE_RETURN_IF_ERROR(file.Remove());
        continue;
      }
      v1::Status run;
      run.set_run(position.run);
      run.set_lineage(absl::HexStringToBytes(lineage));
      EarlierRun found;
      found.name = position.run;
      found.lineage = lineage;
      found.tracker = std::make_unique<WebhookTracker>(&options_, &http_, run, std::move(file), std::move(position));
      earlier.push_back(std::move(found));
    }
    return earlier;
  }

 private:
  static constexpr char kKind[] = "webhook";

  static HttpClient::Options HttpOptions(const WebhookOptions& options) {
    HttpClient::Options http;
    http.give_up = options.give_up;
    return http;
  }

  const WebhookOptions options_;
  HttpClient http_;
};

}  // namespace

std::unique_ptr<FollowTarget> MakeWebhookTarget(WebhookOptions options) {
  return std::make_unique<WebhookTarget>(std::move(options));
}

std::string WebhookSignature(absl::string_view secret, absl::string_view body) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(body.data()), body.size(), digest, &size);
  return absl::StrCat("sha256=", absl::BytesToHexString({reinterpret_cast<const char*>(digest), size}));
}

}  // namespace terse
