// Servers on a loopback port to which the targets of `tersectl follow` hand the news of runs.
#ifndef TERSE_TESTS_TERSECTL_HTTP_RECEIVER_H_
#define TERSE_TESTS_TERSECTL_HTTP_RECEIVER_H_

#include <httplib.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tersectl/follow/mlflow_target.h"

namespace terse {

// A server on a loopback port that answers each request with what `answer` makes of it.
class Receiver {
 public:
  using Answer = std::function<void(const httplib::Request& request, httplib::Response* response)>;

  explicit Receiver(Answer answer) {
    const auto handler = [answer = std::move(answer)](const httplib::Request& request, httplib::Response& response) {
      answer(request, &response);
    };
    server_.Get(".*", handler);
    server_.Post(".*", handler);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) absl::SleepFor(absl::Milliseconds(1));
  }
  // The connections that clients keep open have ended before.
  ~Receiver() {
    server_.stop();
    thread_.join();
  }
  void LimitBodies(size_t bytes) { server_.set_payload_max_length(bytes); }
  std::string url() const { return absl::StrCat("http://127.0.0.1:", port_); }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

// MLflow's answer for the run, whose metrics and parameters are those of `data`.
inline std::string FoundRun(const std::string& data) {
  return absl::StrCat(R"({"info": {"run_id": "7", "status": "RUNNING"}, "data": )", data, "}");
}

// A tracking server whose answers to runs/search and runs/create are given, and that keeps what it is asked to change.
class MlflowServer {
 public:
  MlflowServer(std::string found_runs, std::string created, std::string experiment = R"({"experiment_id": "1"})")
      : found(std::move(found_runs)),
        receiver_([this, created, experiment](const httplib::Request& request, httplib::Response* response) {
          std::string answer = "{}";
          if (absl::EndsWith(request.path, "get-by-name")) answer = absl::StrCat(R"({"experiment": )", experiment, "}");
          if (absl::EndsWith(request.path, "search")) answer = absl::StrCat(R"({"runs": )", found, "}");
          if (absl::EndsWith(request.path, "runs/create")) answer = absl::StrCat(R"({"run": )", created, "}");
          const bool changes = request.method == "POST" && !absl::EndsWith(request.path, "search");
          if (changes) changed.push_back(request.path.substr(request.path.rfind("mlflow/") + 7) + " " + request.body);
          if (absl::EndsWith(request.path, "log-batch")) {
            batches.push_back(nlohmann::json::parse(request.body));
            response->status = batch_status;
            answer = batch_answer;
          }
          response->set_content(answer, "application/json");
        }) {}

  MlflowOptions options() const {
    MlflowOptions options;
    options.url = receiver_.url();
    return options;
  }

  std::string found;  // the answer's `runs`
  std::vector<nlohmann::json> batches;
  std::vector<std::string> changed;  // method and body of each request that changes something
  int batch_status = 200;
  std::string batch_answer = "{}";
  // It is the last member, so that it ends before what it writes.
  Receiver receiver_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TERSECTL_HTTP_RECEIVER_H_
