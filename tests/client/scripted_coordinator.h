// A coordinator whose every word the test chooses, at the client's end of a connection.
#ifndef TERSE_TESTS_CLIENT_SCRIPTED_COORDINATOR_H_
#define TERSE_TESTS_CLIENT_SCRIPTED_COORDINATOR_H_

#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/coordinator_link.h"

namespace terse {

// Hands out the scripted messages, then ends the connection.
class ScriptedCoordinator : public CoordinatorLink {
 public:
  absl::Status Send(const FromClient& message) override {
    if (lose_sends) return absl::UnavailableError("lost");
    said.push_back(message);
    return absl::OkStatus();
  }
  absl::StatusOr<FromServer> Receive() override {
    if (script.empty()) return absl::UnavailableError("the script is over");
    FromServer message = std::move(script.front());
    script.pop_front();
    if (std::holds_alternative<Assignment>(message) && lose_after_assignment) lose_sends = true;
    return message;
  }
  void SetMaxDownstreamBytes(int64_t bytes) override { max_downstream_bytes = bytes; }
  absl::StatusOr<std::string> DownloadCheckpoint(Id128, int64_t version, int64_t max_bytes) override {
    downloads.push_back(version);
    return download;
  }
  absl::StatusOr<std::string> DownloadModule(Id128, int64_t max_bytes) override {
    ++module_downloads;
    return module;
  }

  template <typename T>
  std::vector<T> Said() const {
    std::vector<T> found;
    for (const FromClient& message : said) {
      if (const T* one = std::get_if<T>(&message)) found.push_back(*one);
    }
    return found;
  }

  std::deque<FromServer> script;
  std::vector<FromClient> said;
  std::vector<int64_t> downloads;
  absl::StatusOr<std::string> download = absl::NotFoundError("none");
  int module_downloads = 0;
  absl::StatusOr<std::string> module = absl::NotFoundError("none");
  int64_t max_downstream_bytes = 0;
  bool lose_sends = false;
  bool lose_after_assignment = false;
};

}  // namespace terse

#endif  // TERSE_TESTS_CLIENT_SCRIPTED_COORDINATOR_H_
