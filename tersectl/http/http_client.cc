#include "tersectl/http/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/log/plain_text.h"
#include "core/version.h"

namespace terse {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;
constexpr size_t kMostShownBytes = 200;
constexpr long kConnectTimeoutMillis = 10'000;

// libcurl wants this before its first use, while there is one thread.
const bool kCurlBegan = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;

size_t Append(char* bytes, size_t size, size_t count, void* body) {
  auto* const text = static_cast<std::string*>(body);
  if (text->size() + size * count > kMostBytes) return 0;
  text->append(bytes, size * count);
  return size * count;
}

// One header of an answer, or the line above them.
size_t AddHeader(char* bytes, size_t size, size_t count, void* headers) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(absl::string_view(bytes, size * count), absl::MaxSplits(':', 1));
  if (!parts.second.empty()) {
    (*static_cast<std::map<std::string, std::string>*>(headers))[absl::AsciiStrToLower(parts.first)] =
        std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return size * count;
}

// libcurl's progress callback, which ends the transfer unless it returns 0.
int AskWhetherToGiveUp(void* give_up, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(give_up))() ? 1 : 0;
}

absl::Status GivenUp(const std::string& url) {
  return absl::CancelledError(absl::StrCat("the request to ", ShownUrl(url), " was given up"));
}

// The host and what comes before it.
absl::string_view Origin(absl::string_view url) {
  const size_t host = url.find("://");
  if (host == absl::string_view::npos) return "";
  return url.substr(0, url.find_first_of("/?#", host + 3));
}

}  // namespace

std::string ShownUrl(absl::string_view url) {
  const absl::string_view origin = Origin(url);
  const size_t user = origin.find('@');
  const std::string shown = user == absl::string_view::npos
                                ? std::string(origin)
                                : absl::StrCat(origin.substr(0, origin.find("://") + 3), origin.substr(user + 1));
  return origin.size() + 1 < url.size() ? absl::StrCat(shown, "/...") : shown;
}

absl::Status CheckUrl(absl::string_view url) {
  const bool has_scheme = absl::StartsWith(url, "http://") || absl::StartsWith(url, "https://");
  const absl::string_view origin = Origin(url);
  if (!has_scheme || absl::EndsWith(origin, "/")) {
    // The text may be a secret in the wrong place, so it is not shown.
    return absl::InvalidArgumentError(
        "what was given is no address of a server; give http://HOST:PORT or https://HOST");
  }
  if (absl::StrContains(origin, "@")) {
    return absl::InvalidArgumentError(
        absl::StrCat(ShownUrl(url),
                     ": a user and password in the address would be seen in the list of processes; "
                     "give them in the environment (docs/FOLLOW.md)"));
  }
  return absl::OkStatus();
}

HttpClient::HttpClient(Options options)
    : options_(std::move(options)), curl_(kCurlBegan ? curl_easy_init() : nullptr) {}

HttpClient::~HttpClient() { curl_easy_cleanup(curl_); }

absl::StatusOr<HttpResult> HttpClient::Get(const std::string& url) {
  HttpCall request;
  request.url = url;
  return Send(request);
}

absl::StatusOr<HttpResult> HttpClient::Post(const std::string& url, const std::string& body,
                                            const std::vector<std::string>& headers) {
  HttpCall request;
  request.method = "POST";
  request.url = url;
  request.body = body;
  request.headers = headers;
  return Send(request);
}

void HttpClient::SayWhoAsks() {
  if (!options_.user.empty()) {
    curl_easy_setopt(curl_, CURLOPT_USERNAME, options_.user.c_str());
    curl_easy_setopt(curl_, CURLOPT_PASSWORD, options_.password.c_str());
  }
  if (!options_.signature.empty()) {
    curl_easy_setopt(curl_, CURLOPT_AWS_SIGV4, options_.signature.c_str());
  } else if (!options_.user.empty()) {
    curl_easy_setopt(curl_, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
  } else if (!options_.token.empty()) {
    curl_easy_setopt(curl_, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl_, CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
  }
}

absl::StatusOr<HttpResult> HttpClient::Send(const HttpCall& call) {
  if (curl_ == nullptr) return absl::InternalError("libcurl does not start");
  if (options_.give_up && options_.give_up()) return GivenUp(call.url);
  CURL* const curl = curl_;
  const std::string& url = call.url;
  curl_easy_reset(curl);
  HttpResult answer;
  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMillis);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(options_.timeout)));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, absl::StrCat("tersectl/", kVersion).c_str());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, AddHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer.headers);
  if (options_.give_up) {
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, AskWhetherToGiveUp);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &options_.give_up);
  }
  SayWhoAsks();
  if (!options_.authorities.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options_.authorities.c_str());
  if (options_.insecure_tls) {
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  curl_slist* lines = nullptr;
  if (call.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (call.method != "GET") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body.empty() ? "" : call.body.data());
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method.c_str());
    lines = curl_slist_append(lines, absl::StrCat("Content-Type: ", call.content_type).c_str());
    // No round trip before a body of more than 1 MB. libcurl would sign a header that it does not send.
    if (options_.signature.empty()) lines = curl_slist_append(lines, "Expect:");
  }
  for (const std::string& header : call.headers) lines = curl_slist_append(lines, header.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
  const CURLcode sent = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  // The handle outlives this call, and must not keep pointers to what goes with it. Its connections stay.
  curl_easy_reset(curl);
  curl_slist_free_all(lines);
  if (sent == CURLE_WRITE_ERROR) {
    return absl::ResourceExhaustedError(absl::StrCat(ShownUrl(url), " answers with more than ", kMostBytes, " bytes"));
  }
  if (sent == CURLE_ABORTED_BY_CALLBACK) return GivenUp(url);
  if (sent != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat("no answer from ", ShownUrl(url), " (",
                                               why[0] == '\0' ? curl_easy_strerror(sent) : PlainText(why), ")"));
  }
  return answer;
}

std::string EnvironmentValue(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UrlEscape(const std::string& text) {
  char* const escaped = curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size()));
  std::string result = escaped == nullptr ? "" : escaped;
  curl_free(escaped);
  return result;
}

std::string UrlUnescape(const std::string& text) {
  int size = 0;
  char* const plain = curl_easy_unescape(nullptr, text.data(), static_cast<int>(text.size()), &size);
  std::string result = plain == nullptr ? "" : std::string(plain, static_cast<size_t>(size));
  curl_free(plain);
  return result;
}

absl::Status HttpFailure(const std::string& url, const HttpResult& reply) {
  const std::string line(absl::string_view(reply.body).substr(0, std::min(kMostShownBytes, reply.body.find('\n'))));
  return absl::UnavailableError(
      absl::StrCat(ShownUrl(url), " answers ", reply.status, line.empty() ? "" : ": ", PlainText(line)));
}

}  // namespace terse
