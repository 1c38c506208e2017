// A bucket in memory that answers as S3 does, with failures on demand. It checks the hash of each body and that a
// request is signed; whether the signature is right is checked with a server of somebody else's
// (tests/object_storage.sh).
#ifndef TERSE_TESTS_TERSECTL_FAKE_BUCKET_H_
#define TERSE_TESTS_TERSECTL_FAKE_BUCKET_H_

#include <httplib.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "security/openssl_types.h"

namespace terse {

// s3://models on a loopback port, to which the environment's variables point while it lives. Keys come two a page.
class FakeBucket {
 public:
  FakeBucket() {
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, response);
    };
    for (const char* path : {"/models/.*", "/models/"}) {
      server_.Get(path, handle);
      server_.Put(path, handle);
      server_.Post(path, handle);
      server_.Delete(path, handle);
    }
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // A server that is told to stop before it listens never ends.
    while (!server_.is_running()) absl::SleepFor(absl::Milliseconds(1));
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a-secret", 1);
    setenv("AWS_REGION", "eu-central-1", 1);
    setenv("AWS_ENDPOINT_URL_S3", absl::StrCat("http://127.0.0.1:", port_).c_str(), 1);
  }
  ~FakeBucket() {
    server_.stop();
    thread_.join();
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL_S3"}) {
      unsetenv(name);
    }
  }

  // The next so many requests of the method are answered with the status and S3's code.
  void Fail(const std::string& method, int times, int status, const std::string& code) {
    absl::MutexLock lock(&mutex_);
    failure_ = {method, times, status, code};
  }

  // The next so many uploads in parts fail with status 200, as S3's do, or succeed and are answered with 503.
  void FailLate(int times) {
    absl::MutexLock lock(&mutex_);
    late_errors_ = times;
  }
  void LoseAnswers(int times) {
    absl::MutexLock lock(&mutex_);
    lost_answers_ = times;
  }

  std::map<std::string, std::string> objects() {
    absl::MutexLock lock(&mutex_);
    return objects_;
  }
  void Set(const std::string& key, const std::string& bytes) {
    absl::MutexLock lock(&mutex_);
    objects_[key] = bytes;
  }
  // Uploads in parts that were begun and neither completed nor given up.
  size_t open_uploads() {
    absl::MutexLock lock(&mutex_);
    return uploads_.size();
  }

 private:
  struct Failure {
    std::string method;
    int times = 0;
    int status = 0;
    std::string code;
  };

  void Answer(const httplib::Request& request, httplib::Response& response) {
    absl::MutexLock lock(&mutex_);
    const std::string scope = "/eu-central-1/s3/aws4_request";
    const std::string who = request.get_header_value("Authorization");
    if (!absl::StartsWith(who, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !absl::StrContains(who, scope)) {
      return Refuse(response, 403, "AccessDenied");
    }
    if (request.get_header_value("x-amz-content-sha256") != Sha256Text(request.body).value()) {
      return Refuse(response, 400, "XAmzContentSHA256Mismatch");
    }
    if (failure_.times > 0 && failure_.method == request.method) {
      --failure_.times;
      return Refuse(response, failure_.status, failure_.code);
    }
    const std::string key = request.path.substr(std::string("/models/").size());
    if (request.method == "GET" && key.empty()) return List(request, response);
    if (request.method == "GET" || request.method == "HEAD") return Read(key, request, response);
    if (request.method == "PUT") return Write(key, request, response);
    if (request.method == "POST") return Post(key, request, response);
    if (request.has_param("uploadId")) {
      uploads_.erase(request.get_param_value("uploadId"));
    } else {
      objects_.erase(key);
    }
    response.status = 204;
  }

  static void Refuse(httplib::Response& response, int status, const std::string& code) {
    response.status = status;
    response.set_content(
        absl::StrCat("<?xml version=\"1.0\"?><Error><Code>", code, "</Code><Message>so it is</Message></Error>"),
        "application/xml");
  }

  void Read(const std::string& key, const httplib::Request& request, httplib::Response& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return Refuse(response, 404, "NoSuchKey");
    response.set_header("ETag", absl::StrCat("\"", Sha256Text(found->second).value(), "\""));
    // httplib cuts the range out of the content.
    response.set_content(found->second, "application/octet-stream");
  }

  void Write(const std::string& key, const httplib::Request& request, httplib::Response& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    response.set_header("ETag", absl::StrCat("\"", Sha256Text(request.body).value(), "\""));
    if (!request.has_param("uploadId")) {
      objects_[key] = request.body;
      return;
    }
    uploads_[request.get_param_value("uploadId")][std::stoi(request.get_param_value("partNumber"))] = request.body;
  }

  void Post(const std::string& key, const httplib::Request& request, httplib::Response& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (request.has_param("uploads")) {
      const std::string id = absl::StrCat("upload/", ++begun_);
      uploads_[id];
      response.set_content(
          absl::StrCat("<InitiateMultipartUploadResult><UploadId>", id, "</UploadId></InitiateMultipartUploadResult>"),
          "application/xml");
      return;
    }
    if (uploads_.count(request.get_param_value("uploadId")) == 0) return Refuse(response, 404, "NoSuchUpload");
    if (late_errors_ > 0) {
      --late_errors_;
      return Refuse(response, 200, "InternalError");
    }
    std::string whole;
    for (const auto& [number, part] : uploads_[request.get_param_value("uploadId")]) whole += part;
    uploads_.erase(request.get_param_value("uploadId"));
    objects_[key] = whole;
    if (lost_answers_ > 0) {
      --lost_answers_;
      return Refuse(response, 503, "ServiceUnavailable");
    }
    response.set_content("<CompleteMultipartUploadResult/>", "application/xml");
  }

  void List(const httplib::Request& request, httplib::Response& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    constexpr int kPage = 2;
    const std::string prefix = request.get_param_value("prefix");
    const std::string after = request.get_param_value("continuation-token");
    std::string xml = "<?xml version=\"1.0\"?><ListBucketResult>";
    int listed = 0;
    std::string last;
    for (const auto& [key, bytes] : objects_) {
      if (!absl::StartsWith(key, prefix) || key <= after || absl::StrContains(key.substr(prefix.size()), "/")) continue;
      if (++listed > kPage) break;
      absl::StrAppend(&xml, "<Contents><Key>", key, "</Key><Size>", bytes.size(), "</Size></Contents>");
      last = key;
    }
    if (listed > kPage) absl::StrAppend(&xml, "<NextContinuationToken>", last, "</NextContinuationToken>");
    response.set_content(xml + "</ListBucketResult>", "application/xml");
  }

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  absl::Mutex mutex_;
  Failure failure_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> objects_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<int, std::string>> uploads_ ABSL_GUARDED_BY(mutex_);
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int late_errors_ ABSL_GUARDED_BY(mutex_) = 0;
  int lost_answers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace terse

#endif  // TERSE_TESTS_TERSECTL_FAKE_BUCKET_H_
