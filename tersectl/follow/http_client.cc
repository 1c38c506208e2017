#include "tersectl/follow/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/log/plain_text.h"
#include "core/version.h"

namespace terse {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;
constexpr size_t kMostShownBytes = 200;

// libcurl wants this before its first use, while there is one thread.
const bool kCurlBegan = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;

size_t Append(char* bytes, size_t size, size_t count, void* body) {
  auto* const text = static_cast<std::string*>(body);
  if (text->size() + size * count > kMostBytes) return 0;
  text->append(bytes, size * count);
  return size * count;
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
    // What was given may be a secret in the wrong place.
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

absl::StatusOr<HttpReply> HttpClient::Get(const std::string& url) { return Send(url, nullptr, {}); }

absl::StatusOr<HttpReply> HttpClient::Post(const std::string& url, const std::string& body,
                                           const std::vector<std::string>& headers) {
  return Send(url, &body, headers);
}

absl::StatusOr<HttpReply> HttpClient::Send(const std::string& url, const std::string* body,
                                           const std::vector<std::string>& headers) {
  if (curl_ == nullptr) return absl::InternalError("libcurl does not start");
  CURL* const curl = curl_;
  curl_easy_reset(curl);
  HttpReply reply;
  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(options_.timeout)));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, absl::StrCat("tersectl/", kVersion).c_str());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
  if (!options_.user.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, options_.user.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, options_.password.c_str());
  } else if (!options_.token.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
  }
  if (!options_.authorities.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options_.authorities.c_str());
  if (options_.insecure_tls) {
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  curl_slist* lines = nullptr;
  if (body != nullptr) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body->data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
    lines = curl_slist_append(lines, "Content-Type: application/json");
    lines = curl_slist_append(lines, "Expect:");  // no round trip before a body of more than 1 MB
  }
  for (const std::string& header : headers) lines = curl_slist_append(lines, header.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
  const CURLcode sent = curl_easy_perform(curl);
  curl_slist_free_all(lines);
  if (sent == CURLE_WRITE_ERROR) {
    return absl::ResourceExhaustedError(absl::StrCat(ShownUrl(url), " answers with more than ", kMostBytes, " bytes"));
  }
  if (sent != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat("no answer from ", ShownUrl(url), " (",
                                               why[0] == '\0' ? curl_easy_strerror(sent) : PlainText(why), ")"));
  }
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
  return reply;
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

absl::Status HttpFailure(const std::string& url, const HttpReply& reply) {
  const std::string line(absl::string_view(reply.body).substr(0, std::min(kMostShownBytes, reply.body.find('\n'))));
  return absl::UnavailableError(
      absl::StrCat(ShownUrl(url), " answers ", reply.status, line.empty() ? "" : ": ", PlainText(line)));
}

}  // namespace terse
