#include "web/http_server.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/host_port.h"
#include "core/log/log.h"
#include "core/status.h"
#include "core/version.h"
#include "net/peer.h"
#include "net/peer_places.h"
#include "security/https.h"
#include "security/transport.h"
#include "web/http_router.h"
#include "web/log_component.h"

namespace terse {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr auto kPatience = std::chrono::seconds(kHttpPatienceSeconds);
constexpr size_t kLeastBytesPerSecond = 100'000;
constexpr auto kFirstPatience = std::chrono::seconds(kHttpFirstSeconds);
// Limits of the bytes that a peer still sends after its last reply, and of the time for them.
constexpr size_t kLateBytes = 1 << 20;
constexpr auto kLatePatience = std::chrono::seconds(2);
// After an accept that failed for want of files or memory.
constexpr auto kAcceptPause = std::chrono::milliseconds(200);

// The state that all connections share. Its threads end before it does.
struct Site {
  Site(const HttpOptions& options, std::vector<HttpRoute> routes)
      : options(options), router(std::move(routes)), is_local(IsLocalAddress(options.address)) {}

  const HttpOptions options;
  const HttpRouter router;
  const bool is_local;
  std::string url;
  PeerPlaces places{kHttpConnections, kHttpConnectionsOfOne};
  asio::io_context io{1};
  // Looks and commands have threads of their own, so that the page can be looked at while commands wait. One thread
  // more than there are commands at a time refuses the others.
  asio::thread_pool lookers{kHttpHandlers};
  asio::thread_pool commanders{kHttpCommands + 1};
};

// The page runs its own scripts and asks its own server, and nothing else.
void SetHeaders(const HttpAnswer& answer, http::fields* fields) {
  fields->set(http::field::server, absl::StrCat("terse/", kVersion));
  fields->set(http::field::date, absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone()));
  fields->set(http::field::content_type, answer.reply.type);
  fields->set(http::field::cache_control, "no-store");
  fields->set("Content-Security-Policy",
              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  fields->set("Cross-Origin-Resource-Policy", "same-origin");
  fields->set("X-Content-Type-Options", "nosniff");
  fields->set("Referrer-Policy", "no-referrer");
  fields->set(http::field::vary, "Accept-Encoding");
  if (answer.code == 405) fields->set(http::field::allow, answer.allow);
  if (!answer.reply.file.empty()) {
    fields->set(http::field::content_disposition, absl::StrCat("attachment; filename=\"", answer.reply.file, "\""));
  }
}

std::string Field(const http::fields& fields, absl::string_view name) {
  const auto value = fields[boost::string_view(name.data(), name.size())];
  return std::string(value.data(), value.size());
}

// The name by which the browser of the caller knows this server, or the page that asks; "http://" or "https://" is left
// out, because a proxy may have changed it.
absl::string_view WithoutScheme(absl::string_view origin) {
  const size_t colon = origin.find("://");
  return colon == absl::string_view::npos ? origin : origin.substr(colon + 3);
}

// The request is one that this server's own page may have sent, or a program.
absl::optional<HttpAnswer> RefusalOfPost(const http::fields& head, bool has_length, uint64_t length) {
  const std::string site = Field(head, "Sec-Fetch-Site"), origin = Field(head, "Origin");
  const bool is_own = (site.empty() || site == "same-origin" || site == "none") &&
                      (origin.empty() || WithoutScheme(origin) == Field(head, "Host"));
  if (!is_own) return ErrorAnswer(403, "a page of another site may not ask");
  if (Field(head, kRequestHeader).empty()) {
    return ErrorAnswer(403, absl::StrCat("a command needs the header ", kRequestHeader,
                                         ": 1, which pages of other sites cannot send"));
  }
  if (!absl::StartsWithIgnoreCase(Field(head, "Content-Type"), "application/json")) {
    return ErrorAnswer(415, "the body of a command is JSON: send it with Content-Type: application/json");
  }
  if (!has_length) return ErrorAnswer(411, "a command needs a Content-Length");
  if (length > kHttpBodyBytes) {
    return ErrorAnswer(413, absl::StrCat("the body of a command has ", kHttpBodyBytes, " bytes at most"));
  }
  return absl::nullopt;
}

// One connection: a head is read, and the body of a POST, answered by a thread for looks or commands, the reply
// written, and so on. Its functions run in the thread of `site->io`.
template <typename Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Site* site, std::unique_ptr<PeerPlaces::Place> place, std::string host, Stream stream)
      : site_(site), place_(std::move(place)), host_(std::move(host)), stream_(std::move(stream)) {}

  void Begin() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      beast::get_lowest_layer(stream_).expires_after(kFirstPatience);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
        if (!error) self->Read(kFirstPatience);
      });
    } else {
      Read(kFirstPatience);
    }
  }

 private:
  void Read(std::chrono::seconds patience) {
    parser_.emplace();
    parser_->header_limit(kHttpHeadBytes);
    // Bodies are looked at before they are read. Where there is no limit at all, Boost 1.74 finds every body too long.
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    beast::get_lowest_layer(stream_).expires_after(patience);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, size_t) { self->OnHead(error); });
  }

  void OnHead(error_code error) {
    const bool is_malformed = error && error.category() == make_error_code(http::error::bad_target).category();
    if (error == http::error::end_of_stream || error == http::error::partial_message) return Close();
    if (error == http::error::header_limit) return Send(ErrorAnswer(431, "the request's head is too long"), false);
    if (is_malformed) return Send(ErrorAnswer(400, absl::StrCat("no HTTP request: ", error.message())), false);
    if (error) return;  // the peer has gone, or is too slow
    const auto& request = parser_->get();
    // A body that is not read ends the connection: what follows it cannot be found without.
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    if (absl::optional<HttpAnswer> refusal = Refusal(request); refusal.has_value()) {
      return Send(*std::move(refusal), request.keep_alive() && !has_body);
    }
    if (request.method() != http::verb::post || parser_->is_done()) return Ask(request.keep_alive() && !has_body);
    parser_->body_limit(kHttpBodyBytes);
    beast::get_lowest_layer(stream_).expires_after(kFirstPatience);
    http::async_read(stream_, buffer_, *parser_, [self = this->shared_from_this()](error_code failed, size_t) {
      if (!failed) self->Ask(self->parser_->get().keep_alive());
    });
  }

  // Has the request, which is whole, answered.
  void Ask(bool keep) {
    auto& request = parser_->get();
    HttpRouter::Question question;
    question.verb = request.method() == http::verb::post ? HttpVerb::kPost : HttpVerb::kGet;
    question.target = std::string(request.target());
    question.caller.token = Field(request, kTokenHeader);
    question.caller.host = host_;
    question.body = std::move(request.body());
    asio::thread_pool& threads = question.verb == HttpVerb::kPost ? site_->commanders : site_->lookers;
    asio::post(threads, [self = this->shared_from_this(), keep, question = std::move(question)]() mutable {
      HttpAnswer answer = self->Answer(std::move(question));
      asio::post(self->stream_.get_executor(),
                 [self, keep, answer = std::move(answer)]() mutable { self->Send(std::move(answer), keep); });
    });
  }

  // Returns the answer to a request that is refused before any route is asked; nullopt for one that a route answers.
  absl::optional<HttpAnswer> Refusal(const http::request<http::string_body>& request) const {
    const bool looks = request.method() == http::verb::get || request.method() == http::verb::head;
    const bool is_command = request.method() == http::verb::post && site_->router.takes_posts();
    if (!looks && !is_command) return ErrorAnswer(405, "only GET: what is served here is for looking");
    const std::string host = Field(request, "Host"), origin = Field(request, "Sec-Fetch-Site");
    if (site_->is_local && !IsLoopbackHost(host)) {
      return ErrorAnswer(403, absl::StrCat("'", host, "' is no name of this machine's own; use ", site_->url));
    }
    if (is_command) {
      return RefusalOfPost(request, parser_->content_length().has_value(), parser_->content_length().value_or(0));
    }
    const bool is_foreign = origin == "cross-site" || origin == "same-site";
    if (is_foreign && Field(request, "Sec-Fetch-Mode") != "navigate") {
      return ErrorAnswer(403, "a page of another site may not ask");
    }
    return absl::nullopt;
  }

  static void LogAnswer(const http::request<http::string_body>& request, int code) {
    if (!IsLogged(LogLevel::kDebug, kWebLog)) return;
    Log(LogLevel::kDebug, kWebLog, {},
        absl::StrCat(code, " ", std::string(request.method_string()), " ", std::string(request.target())));
  }

  // Called by a thread for looks or commands, while this connection does nothing else.
  HttpAnswer Answer(HttpRouter::Question question) {
    absl::Status identified;
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      absl::StatusOr<std::string> pem = PeerPem(stream_.native_handle());
      identified = pem.status();
      if (pem.ok()) question.caller.certificate = *std::move(pem);
    }
    const HttpCaller& caller = question.caller;
    return site_->router.Answer(question, [&](absl::string_view method) -> absl::Status {
      if constexpr (std::is_same_v<Stream, TlsStream>) {
        return identified.ok() ? site_->options.check(caller.certificate, method) : identified;
      }
      return site_->options.check_cleartext ? site_->options.check_cleartext(caller, method) : absl::OkStatus();
    });
  }

  void Send(HttpAnswer answer, bool keep) {
    body_ = answer.reply.body;
    const auto& request = parser_->get();
    LogAnswer(request, answer.code);
    const bool packs = !body_->gzip.empty() && absl::StrContains(Field(request, "Accept-Encoding"), "gzip");
    const std::string& bytes = packs ? body_->gzip : body_->plain;
    const bool is_head = request.method() == http::verb::head;
    response_.emplace(static_cast<http::status>(answer.code), 11);
    SetHeaders(answer, &response_->base());
    if (packs) response_->set(http::field::content_encoding, "gzip");
    response_->keep_alive(keep);
    response_->content_length(bytes.size());
    response_->body() = boost::beast::span<const char>(bytes.data(), is_head ? 0 : bytes.size());
    serializer_.emplace(*response_);
    // A model's file may be large: who takes a megabyte in ten seconds is served to the end.
    beast::get_lowest_layer(stream_).expires_after(kPatience +
                                                   std::chrono::seconds(bytes.size() / kLeastBytesPerSecond));
    http::async_write(stream_, *serializer_, [self = this->shared_from_this(), keep](error_code error, size_t) {
      if (error) return;
      return keep ? self->Read(kPatience) : self->Close();
    });
  }

  // A TLS peer is told that nothing is missing.
  void Close() {
    beast::get_lowest_layer(stream_).expires_after(kLatePatience);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) { self->CloseSocket(); });
    } else {
      CloseSocket();
    }
  }

  // The kernel resets a connection that is closed while bytes of the peer wait to be read, and a reset takes the reply
  // from a peer that has not read it. A body that was refused is therefore received and dropped first.
  void CloseSocket() {
    error_code ignored;
    beast::get_lowest_layer(stream_).socket().shutdown(tcp::socket::shutdown_send, ignored);
    DropLateBytes(kLateBytes);
  }

  void DropLateBytes(size_t most) {
    buffer_.clear();
    beast::get_lowest_layer(stream_).async_read_some(
        buffer_.prepare(kHttpHeadBytes), [self = this->shared_from_this(), most](error_code error, size_t got) {
          if (!error && got < most) self->DropLateBytes(most - got);
        });
  }

  Site* const site_;
  const std::unique_ptr<PeerPlaces::Place> place_;
  const std::string host_;
  Stream stream_;
  beast::flat_buffer buffer_{kHttpHeadBytes};
  absl::optional<http::request_parser<http::string_body>> parser_;
  std::shared_ptr<const PackedText> body_;
  absl::optional<http::response<http::span_body<const char>>> response_;
  absl::optional<http::response_serializer<http::span_body<const char>>> serializer_;
};

absl::StatusOr<tcp::endpoint> Resolve(asio::io_context& io, const HttpOptions& options) {
  const absl::StatusOr<HostPort> address = ParseHostPort(options.address);
  if (!address.ok()) return Annotate(address.status(), options.flag);
  error_code error;
  const auto found =
      tcp::resolver(io).resolve(address->host, absl::StrCat(address->port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.address, ": no such host; choose another with ", options.flag));
  }
  return found.begin()->endpoint();
}

class BeastServer : public HttpServer {
 public:
  BeastServer(const HttpOptions& options, std::vector<HttpRoute> routes) : site_(options, std::move(routes)) {}
  ~BeastServer() override {
    site_.io.stop();
    if (thread_.joinable()) thread_.join();
    for (asio::thread_pool* threads : {&site_.lookers, &site_.commanders}) {
      threads->stop();
      threads->join();
    }
  }

  absl::Status Listen() {
    TERSE_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, Resolve(site_.io, site_.options));
    const bool is_https = site_.options.files != nullptr && !site_.is_local;
    if (is_https) {
      tls_.emplace(asio::ssl::context::tls_server);
      TERSE_RETURN_IF_ERROR(ServeMutualTls(site_.options.files.get(), tls_->native_handle()));
    } else {
      TERSE_RETURN_IF_ERROR(CheckCleartext(site_.options.insecure, site_.options.address));
    }
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", site_.options.address, ": ", error.message(),
                                                 "; choose another with ", site_.options.flag));
    }
    TERSE_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(site_.options.address));
    address.port = acceptor_.local_endpoint().port();
    site_.url = absl::StrCat(is_https ? "https" : "http", "://", HostPortText(address));
    Accept();
    thread_ = std::thread([this] { site_.io.run(); });
    return absl::OkStatus();
  }

  const std::string& url() const override { return site_.url; }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return AcceptLater(error);
      Welcome(std::move(socket));
      Accept();
    });
  }

  void Welcome(tcp::socket socket) {
    error_code gone;
    const tcp::endpoint peer = socket.remote_endpoint(gone);
    if (gone) return;
    sockaddr_storage address = {};
    std::memcpy(&address, peer.data(), std::min(peer.size(), sizeof address));
    std::unique_ptr<PeerPlaces::Place> place = site_.places.Take(PeerOf(address));
    if (place == nullptr) return;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (tls_.has_value()) {
      const TlsConnections::Beginning begins(site_.options.connections, HostText(address));
      TlsStream stream(std::move(socket), *tls_);
      std::make_shared<Connection<TlsStream>>(&site_, std::move(place), HostText(address), std::move(stream))->Begin();
    } else {
      PlainStream stream(std::move(socket));
      std::make_shared<Connection<PlainStream>>(&site_, std::move(place), HostText(address), std::move(stream))
          ->Begin();
    }
  }

  void AcceptLater(error_code error) {
    Log(LogLevel::kWarn, kWebLog, {}, absl::StrCat("the HTTP server could not take a connection: ", error.message()));
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code ended) {
      if (!ended) Accept();
    });
  }

  // The connections, which the site's threads hold, go before the context that they were made with.
  absl::optional<asio::ssl::context> tls_;
  Site site_;
  tcp::acceptor acceptor_{site_.io};
  asio::steady_timer pause_{site_.io};
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              std::vector<HttpRoute> routes) {
  auto server = std::make_unique<BeastServer>(options, std::move(routes));
  TERSE_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace terse
