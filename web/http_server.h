// A small HTTP server for looking at a process, and for commands to it with small bodies, on a port of its own.
#ifndef TERSE_WEB_HTTP_SERVER_H_
#define TERSE_WEB_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "security/live_tls_directory.h"
#include "security/server_credentials.h"
#include "security/tls_connections.h"
#include "web/packed_text.h"

namespace terse {

// The sender of a request, as the connection and the head of the request show it.
struct HttpCaller {
  std::string certificate;  // PEM; empty on a connection in cleartext
  std::string token;        // of the header kTokenHeader; empty without
  std::string host;         // the peer's address, without its port
};

struct HttpRequest {
  std::vector<std::string> captures;         // what the route's asterisks stand for, decoded
  std::map<std::string, std::string> query;  // the last value of each key, decoded
  HttpCaller caller;
  std::string body;  // of a POST: kHttpBodyBytes at most
};

struct HttpReply {
  std::string type;                        // a MIME type
  std::shared_ptr<const PackedText> body;  // never null; may be shared with other replies
  std::string file = {};                   // the name under which a browser keeps it; empty: it shows it
};

enum class HttpVerb { kGet, kPost };  // HEAD is answered wherever GET is

// A status becomes the HTTP code that says the same (docs/DASHBOARD.md), with {"error": "its message"} as the body.
using HttpHandler = std::function<absl::StatusOr<HttpReply>(const HttpRequest&)>;

struct HttpRoute {
  std::string path;     // whole; a segment "*" is any segment that is not empty, and becomes a capture
  std::string method;   // of the gRPC services: who may call that may ask for this ("/terse.v1.Admin/ListRuns")
  HttpHandler handler;  // called by several threads at once: kHttpHandlers for looks
  HttpVerb verb = HttpVerb::kGet;
};

// Whether a caller without a certificate may ask for a route with this method.
using CleartextCheck = std::function<absl::Status(const HttpCaller& caller, absl::string_view method)>;

struct HttpOptions {
  std::string address;    // "host:port", where port 0 takes a free one
  bool insecure = false;  // cleartext may reach other machines
  // With them, connections from other machines are HTTPS and need a certificate; without them there is only cleartext.
  std::shared_ptr<const LiveTlsDirectory> files;
  CallCheck check;                                   // of the certificate, for the route's method
  std::shared_ptr<TlsConnections> connections = {};  // watches the handshakes; may be nullptr
  std::string flag = "--http";                       // the command line's option that sets the address, for errors
  CleartextCheck check_cleartext = {};               // of connections in cleartext; empty: they may ask for everything
};

// A secret that a caller without a certificate may show. Pages of other sites can send neither of these headers without
// asking the server first, which says no; a POST needs the second one, with any value.
inline constexpr char kTokenHeader[] = "X-Terse-Token";
inline constexpr char kRequestHeader[] = "X-Terse-Request";

inline constexpr int kHttpHandlers = 2;           // looks that are answered at a time; for commands: http_router.h
inline constexpr int kHttpConnections = 256;      // open at a time; more are closed at once
inline constexpr int kHttpHeadBytes = 16 * 1024;  // of a request: its line and its headers
inline constexpr int kHttpBodyBytes = 4 * 1024;   // of a POST
// The connections of one peer (net/peer.h), this machine too: it takes several peers to leave no place for others.
inline constexpr int kHttpConnectionsOfOne = 128;
inline constexpr int kHttpFirstSeconds = 5;      // for a handshake, and for the head of the first request
inline constexpr int kHttpPatienceSeconds = 30;  // for another request, for a reply to be taken

// Serves from Start to its end. On a loopback address: cleartext, for whoever is on this machine, and only under a
// loopback name and not for pages of other sites, so that none reads it, or keeps it busy, through the browser of
// somebody here. Elsewhere: mutual TLS 1.3, or cleartext when that is allowed. Where no route is a POST, nothing but
// GET and HEAD is heard. A POST has a body in JSON, with its length, and kRequestHeader, and none but a page of this
// server may have sent it, where a browser says that a page did.
class HttpServer {
 public:
  // UNAVAILABLE when the address cannot be listened on; INVALID_ARGUMENT when it is none; FAILED_PRECONDITION for
  // cleartext that other machines would reach.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options, std::vector<HttpRoute> routes);
  // Closes all connections and waits for the handlers that run.
  virtual ~HttpServer() = default;

  // "http://127.0.0.1:7780", with the port that was chosen.
  virtual const std::string& url() const = 0;
};

}  // namespace terse

#endif  // TERSE_WEB_HTTP_SERVER_H_
