#include "tersectl/objects/s3_objects.h"

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "boost/property_tree/ptree.hpp"
#include "boost/property_tree/xml_parser.hpp"
#include "core/file_system.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "security/openssl_types.h"
#include "tersectl/http/http_client.h"

namespace terse {
namespace {

using Xml = boost::property_tree::ptree;

constexpr int64_t kMostParts = 10'000;
constexpr int kAttempts = 4;
constexpr int kMostPages = 10'000;
constexpr int kMostXmlDepth = 16;
constexpr absl::Duration kFirstWait = absl::Milliseconds(500);
constexpr absl::Duration kPartTimeout = absl::Minutes(10);

std::string FirstVariable(const char* name, const char* other, const std::string& rest = "") {
  std::string value = EnvironmentValue(name);
  if (value.empty()) value = EnvironmentValue(other);
  return value.empty() ? rest : value;
}

bool IsBucketName(absl::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 && std::all_of(bucket.begin(), bucket.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '.';
         });
}

// A path in an address as the signature wants it: everything but unreserved characters and '/' is escaped.
std::string EscapedPath(absl::string_view path) {
  std::string escaped;
  for (const char c : path) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-._~/", absl::string_view(&c, 1))) {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<uint8_t>(c));
    }
  }
  return escaped;
}

// The parser descends once for every element within another.
bool IsShallow(absl::string_view text) {
  int depth = 0;
  for (size_t i = text.find('<'); i != absl::string_view::npos && i + 1 < text.size(); i = text.find('<', i + 1)) {
    const char next = text[i + 1];
    if (next == '/') {
      --depth;
    } else if (next != '?' && next != '!' && ++depth > kMostXmlDepth) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<Xml> ParseXml(const std::string& text, const std::string& address) {
  const absl::Status bad = absl::UnavailableError(
      absl::StrCat(address, " answers with something that is not what S3 answers; check the endpoint"));
  if (!IsShallow(text)) return bad;
  try {
    std::istringstream in(text);
    Xml tree;
    boost::property_tree::read_xml(in, tree);
    return tree;
  } catch (const std::exception&) {
    return bad;
  }
}

class S3Objects : public ObjectStore {
 public:
  S3Objects(const std::string& bucket, std::string prefix, const S3Access& access)
      : address_(absl::StrCat("s3://", bucket, prefix.empty() ? "" : "/", prefix)),
        prefix_(prefix.empty() ? "" : absl::StrCat(prefix, "/")),
        session_token_(access.session_token),
        root_(access.endpoint.empty() ? absl::StrCat("https://", bucket, ".s3.", access.region, ".amazonaws.com")
                                      : absl::StrCat(absl::StripSuffix(access.endpoint, "/"), "/", bucket)),
        http_(HttpOptions(access)) {}

  std::string address() const override { return address_; }

  absl::Status Put(const std::string& name, int64_t bytes, ReadPart read) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(name));
    if (bytes > kMostParts * kObjectPartBytes) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has ", bytes, " bytes, more than ",
                                                     kMostParts * kObjectPartBytes,
                                                     ", which is the most for a bucket"));
    }
    if (bytes > kObjectPartBytes) return PutInParts(name, bytes, read);
    TERSE_ASSIGN_OR_RETURN(const std::string body, read(0, bytes));
    return Ask("PUT", name, "", body).status();
  }

  absl::Status Get(const std::string& name, const std::string& path) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(name));
    TERSE_ASSIGN_OR_RETURN(const HttpResult head, Ask("HEAD", name, "", ""));
    int64_t total = 0;
    if (!absl::SimpleAtoi(HeaderOf(head, "content-length"), &total)) {
      return absl::UnavailableError(absl::StrCat(address_, " does not say how long ", name, " is; check the endpoint"));
    }
    // Should the object be replaced meanwhile, the parts must not be those of two.
    const std::string match = absl::StrCat("If-Match: ", HeaderOf(head, "etag"));
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, PosixFiles().Create(path));
    for (int64_t offset = 0; offset < total; offset += kObjectPartBytes) {
      const int64_t bytes = std::min(kObjectPartBytes, total - offset);
      const std::string range = absl::StrCat("Range: bytes=", offset, "-", offset + bytes - 1);
      TERSE_ASSIGN_OR_RETURN(const HttpResult part, Ask("GET", name, "", "", {range, match}));
      if (static_cast<int64_t>(part.body.size()) != bytes) {
        return absl::UnavailableError(absl::StrCat(address_, "/", name, " has ", part.body.size(), " bytes where ",
                                                   bytes, " were asked for; try again"));
      }
      TERSE_RETURN_IF_ERROR(file->Append(part.body));
    }
    return file->Sync();
  }

  absl::StatusOr<std::vector<ObjectInfo>> List(const std::string& folder) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(folder));
    const std::string prefix = UrlEscape(absl::StrCat(prefix_, folder, "/"));
    std::vector<ObjectInfo> objects;
    std::string token;
    for (int page = 0; page < kMostPages; ++page) {
      // The signature wants the parameters in the order of their names.
      const std::string query =
          absl::StrCat(token.empty() ? "" : absl::StrCat("continuation-token=", UrlEscape(token), "&"),
                       "delimiter=%2F&list-type=2&prefix=", prefix);
      TERSE_ASSIGN_OR_RETURN(const HttpResult answer, Ask("GET", "", query, ""));
      TERSE_ASSIGN_OR_RETURN(const Xml tree, ParseXml(answer.body, address_));
      static const Xml& nothing = *new Xml();
      const Xml& result = tree.get_child("ListBucketResult", nothing);
      for (const auto& [tag, child] : result) {
        if (tag != "Contents") continue;
        std::string key = child.get<std::string>("Key", "");
        if (!absl::StartsWith(key, prefix_)) continue;
        objects.push_back({key.substr(prefix_.size()), child.get<int64_t>("Size", 0)});
      }
      token = result.get<std::string>("NextContinuationToken", "");
      if (token.empty()) return objects;
    }
    return absl::UnavailableError(absl::StrCat(address_, " lists without an end; check the endpoint"));
  }

  absl::Status Remove(const std::string& name) override {
    TERSE_RETURN_IF_ERROR(CheckObjectName(name));
    const absl::Status status = Ask("DELETE", name, "", "").status();
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

 private:
  static HttpClient::Options HttpOptions(const S3Access& access) {
    HttpClient::Options options;
    options.user = access.key_id;
    options.password = access.secret_key;
    options.signature = absl::StrCat("aws:amz:", access.region, ":s3");
    options.authorities = access.authorities;
    options.timeout = kPartTimeout;
    options.give_up = access.give_up;
    return options;
  }

  // Empty when the answer has no such header.
  static std::string HeaderOf(const HttpResult& answer, const std::string& name) {
    const auto found = answer.headers.find(name);
    return found == answer.headers.end() ? "" : found->second;
  }

  absl::Status PutInParts(const std::string& name, int64_t bytes, ReadPart read) {
    TERSE_ASSIGN_OR_RETURN(const HttpResult begun, Ask("POST", name, "uploads=", ""));
    TERSE_ASSIGN_OR_RETURN(const Xml tree, ParseXml(begun.body, address_));
    const auto upload = tree.get<std::string>("InitiateMultipartUploadResult.UploadId", "");
    if (upload.empty()) return absl::UnavailableError(absl::StrCat(address_, " began no upload; check the endpoint"));
    const std::string id = absl::StrCat("uploadId=", UrlEscape(upload));
    absl::Status status = PutParts(name, id, bytes, read);
    // The parts that are there take space, for which the bucket's owner pays.
    if (!status.ok()) Ask("DELETE", name, id, "").status().IgnoreError();
    return status;
  }

  absl::Status PutParts(const std::string& name, const std::string& id, int64_t bytes, ReadPart read) {
    std::string list = "<CompleteMultipartUpload>";
    int64_t number = 0;
    for (int64_t offset = 0; offset < bytes; offset += kObjectPartBytes) {
      TERSE_ASSIGN_OR_RETURN(const std::string part, read(offset, std::min(kObjectPartBytes, bytes - offset)));
      TERSE_ASSIGN_OR_RETURN(const HttpResult reply,
                             Ask("PUT", name, absl::StrCat("partNumber=", ++number, "&", id), part));
      const std::string tag = HeaderOf(reply, "etag");
      if (tag.empty())
        return absl::UnavailableError(absl::StrCat(address_, " took a part without an ETag; check the endpoint"));
      absl::StrAppend(&list, "<Part><PartNumber>", number, "</PartNumber><ETag>", tag, "</ETag></Part>");
    }
    list += "</CompleteMultipartUpload>";
    const absl::Status status = Ask("POST", name, id, list).status();
    // The answer to an earlier attempt may have been lost: the upload is then over, and the object there.
    if (!absl::IsNotFound(status)) return status;
    const absl::StatusOr<HttpResult> head = Ask("HEAD", name, "", "");
    return head.ok() && HeaderOf(*head, "content-length") == absl::StrCat(bytes) ? absl::OkStatus() : status;
  }

  // One call, tried again while the place is in trouble. Statuses as ObjectStore.
  absl::StatusOr<HttpResult> Ask(const std::string& method, const std::string& name, const std::string& query,
                                 absl::string_view body, const std::vector<std::string>& headers = {}) {
    HttpCall request;
    request.method = method;
    request.url = absl::StrCat(root_, "/", name.empty() ? "" : EscapedPath(absl::StrCat(prefix_, name)),
                               query.empty() ? "" : "?", query);
    request.content_type = "application/octet-stream";
    request.body = body;
    request.headers = headers;
    TERSE_ASSIGN_OR_RETURN(const std::string hash, Sha256Text(body));
    request.headers.push_back(absl::StrCat("x-amz-content-sha256: ", hash));
    if (!session_token_.empty()) request.headers.push_back(absl::StrCat("x-amz-security-token: ", session_token_));
    absl::Duration wait = kFirstWait;
    for (int attempt = 1;; ++attempt, wait *= 2) {
      absl::StatusOr<HttpResult> reply = http_.Send(request);
      if (reply.ok() && reply->status / 100 == 2 && !FailsLate(request, *reply)) return reply;
      const absl::Status failure = reply.ok() ? FailureOf(*reply, name) : reply.status();
      if (!absl::IsUnavailable(failure) || attempt == kAttempts) return failure;
      absl::SleepFor(wait);
    }
  }

  // The end of an upload in parts is answered with 200 at first, and with its failure in the body.
  static bool FailsLate(const HttpCall& call, const HttpResult& answer) {
    return call.method == "POST" && absl::StrContains(answer.body, "<Error>");
  }

  // The reason is S3's own, "AccessDenied: Access Denied." for example.
  absl::Status FailureOf(const HttpResult& reply, const std::string& name) const {
    const absl::StatusOr<Xml> tree = ParseXml(reply.body, address_);
    const std::string place = name.empty() ? address_ : absl::StrCat(address_, "/", name);
    const std::string reason = absl::StrCat(place, ": HTTP ", reply.status, " ",
                                            tree.ok() ? PlainText(tree->get<std::string>("Error.Code", "")) : "", " ",
                                            tree.ok() ? PlainText(tree->get<std::string>("Error.Message", "")) : "");
    const std::string line(absl::StripSuffix(absl::StripAsciiWhitespace(reason), "."));
    if (reply.status == 404) return absl::NotFoundError(line);
    if (reply.status == 401 || reply.status == 403) {
      return absl::PermissionDeniedError(
          absl::StrCat(line, "; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and what the key may do"));
    }
    if (reply.status / 100 == 5 || reply.status == 429 || reply.status == 200) return absl::UnavailableError(line);
    return absl::FailedPreconditionError(line);
  }

  const std::string address_;
  const std::string prefix_;  // with its '/', or empty
  const std::string session_token_;
  const std::string root_;  // the bucket's address
  HttpClient http_;
};

}  // namespace

absl::StatusOr<S3Access> S3AccessOfEnvironment() {
  S3Access access;
  access.key_id = EnvironmentValue("AWS_ACCESS_KEY_ID");
  access.secret_key = EnvironmentValue("AWS_SECRET_ACCESS_KEY");
  if (access.key_id.empty() || access.secret_key.empty()) {
    return absl::FailedPreconditionError(
        "the environment has no keys of the bucket; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  }
  access.session_token = EnvironmentValue("AWS_SESSION_TOKEN");
  access.region = FirstVariable("AWS_REGION", "AWS_DEFAULT_REGION", access.region);
  access.endpoint = FirstVariable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  access.authorities = EnvironmentValue("AWS_CA_BUNDLE");
  if (!access.endpoint.empty()) TERSE_RETURN_IF_ERROR(CheckUrl(access.endpoint));
  return access;
}

absl::StatusOr<std::unique_ptr<ObjectStore>> MakeS3Objects(const std::string& place, const S3Access& access) {
  const std::string bucket = place.substr(0, place.find('/'));
  std::string prefix(absl::StripSuffix(place.size() > bucket.size() ? place.substr(bucket.size() + 1) : "", "/"));
  if (!IsBucketName(bucket)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "s3://", PlainText(place), " names no bucket; a bucket has 3 to 63 lower-case letters, digits, '-' and '.'"));
  }
  if (!prefix.empty()) TERSE_RETURN_IF_ERROR(CheckObjectName(prefix));
  return std::make_unique<S3Objects>(bucket, std::move(prefix), access);
}

}  // namespace terse
