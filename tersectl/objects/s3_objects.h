// Objects in a bucket of a storage service that speaks Amazon's S3 REST API, signed with AWS signature version 4.
#ifndef TERSE_TERSECTL_OBJECTS_S3_OBJECTS_H_
#define TERSE_TERSECTL_OBJECTS_S3_OBJECTS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tersectl/objects/object_store.h"

namespace terse {

// A bucket's service and the keys to it.
struct S3Access {
  std::string key_id;         // AWS_ACCESS_KEY_ID
  std::string secret_key;     // AWS_SECRET_ACCESS_KEY; it signs requests and is sent with none
  std::string session_token;  // of temporary keys; empty: none
  std::string region = "us-east-1";
  // "https://s3.example:9000", where the bucket is the first part of the path; empty: Amazon's own, where it is in the
  // host's name.
  std::string endpoint;
  std::string authorities;        // a file with the certificates of the authorities; empty: the system's
  std::function<bool()> give_up;  // HttpClient::Options::give_up
};

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION,
// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, and AWS_CA_BUNDLE, as Amazon's own tools do. FAILED_PRECONDITION without
// keys.
absl::StatusOr<S3Access> S3AccessOfEnvironment();

// `place` is BUCKET[/PREFIX]; the prefix is put before all names, with a '/'. An object of more than kObjectPartBytes
// goes up in parts, each with its SHA-256, and 10,000 of them at most: 83 GB. INVALID_ARGUMENT for no name of a bucket.
absl::StatusOr<std::unique_ptr<ObjectStore>> MakeS3Objects(const std::string& place, const S3Access& access);

}  // namespace terse

#endif  // TERSE_TERSECTL_OBJECTS_S3_OBJECTS_H_
