// The parts of an HTTP request that several routes of the API have.
#ifndef TERSE_COORDINATOR_WEB_QUERY_H_
#define TERSE_COORDINATOR_WEB_QUERY_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "web/http_server.h"

namespace terse {

// The least and the most that a number may be.
struct Bounds {
  int64_t least = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Returns the parameter `key`, or `otherwise` where it is not given. INVALID_ARGUMENT unless it is a whole number
// within the bounds.
absl::StatusOr<int64_t> NumberOf(const HttpRequest& request, const std::string& key, int64_t otherwise,
                                 const Bounds& bounds = {});

// Returns the parameter `key`; empty where it is not given.
std::string TextOf(const HttpRequest& request, const std::string& key);

// Returns the run's name, which is the path's first capture. NOT_FOUND for one that no run can have.
absl::StatusOr<std::string> RunNameOf(const HttpRequest& request);

// Whether protobuf takes the text without complaining on standard error: a filter or a name is text, in UTF-8.
bool IsPrintable(const std::string& text);

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_QUERY_H_
