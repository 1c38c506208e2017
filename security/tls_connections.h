// The TLS connections of a server, as OpenSSL sees them: from where each came, with which certificate, and why a
// handshake failed. gRPC 1.51 tells a server neither the reason of a failed handshake nor, where calls are refused, the
// peer's address.
#ifndef TERSE_SECURITY_TLS_CONNECTIONS_H_
#define TERSE_SECURITY_TLS_CONNECTIONS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace terse {

// Gets the peer's host, as HostText has it (net/peer.h), and the reason in words. Called by the server's threads,
// several at once; must not wait.
using HandshakeSink = std::function<void(const std::string& host, const std::string& reason)>;

// Watches connections from the creation of OpenSSL's object to its end. A failed handshake is told of when the
// connection goes: a missing, unknown, expired or otherwise invalid certificate, another protocol than TLS or an older
// version of it, a peer that refuses our certificate or breaks the protocol, and one that goes away in the middle. A
// connection that ends without having sent a byte, as probes make them, is no handshake. Thread-safe.
class TlsConnections {
 public:
  // `on_failed` may be empty.
  explicit TlsConnections(HandshakeSink on_failed);
  TlsConnections(const TlsConnections&) = delete;
  TlsConnections& operator=(const TlsConnections&) = delete;

  // From here on nobody is told: connections may end later than what the sink uses.
  void Close() ABSL_LOCKS_EXCLUDED(sink_mutex_);

  // The hosts of the open connections whose peers have shown this certificate, in PEM: usually one, several joined by
  // " or ", and empty when there are none. Whatever stands around the certificate in `pem` does not matter.
  std::string HostsOf(absl::string_view pem) const ABSL_LOCKS_EXCLUDED(mutex_);

  // While it lives, each TLS object that OpenSSL makes in this thread is that of a connection from `host`. One at a
  // time in a thread. `connections` may be nullptr, and then nothing is watched.
  class Beginning {
   public:
    Beginning(std::shared_ptr<TlsConnections> connections, std::string host);
    ~Beginning();
    Beginning(const Beginning&) = delete;
    Beginning& operator=(const Beginning&) = delete;

    const std::shared_ptr<TlsConnections>& connections() const { return connections_; }
    const std::string& host() const { return host_; }

   private:
    const std::shared_ptr<TlsConnections> connections_;
    const std::string host_;
  };

  // For the callbacks of OpenSSL: a peer has shown a certificate, its connection has gone, its handshake has failed.
  void Add(const std::string& certificate, const std::string& host) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::string& certificate, const std::string& host) ABSL_LOCKS_EXCLUDED(mutex_);
  void Failed(const std::string& host, const std::string& reason) const ABSL_LOCKS_EXCLUDED(sink_mutex_);

 private:
  mutable absl::Mutex mutex_;
  // Numbers of connections, by the hash of the certificate and by host.
  std::map<std::string, std::map<std::string, int>> open_ ABSL_GUARDED_BY(mutex_);
  // Held while the sink is called, so that Close waits for that.
  mutable absl::Mutex sink_mutex_;
  HandshakeSink on_failed_ ABSL_GUARDED_BY(sink_mutex_);
};

}  // namespace terse

#endif  // TERSE_SECURITY_TLS_CONNECTIONS_H_
