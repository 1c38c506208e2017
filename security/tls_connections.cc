#include "security/tls_connections.h"

#include <openssl/ssl.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "security/openssl_types.h"

namespace terse {
namespace {

// Hosts that are named for one certificate; more are only counted.
constexpr size_t kMostHosts = 4;
// The first byte of every TLS record that a handshake has, alerts included, is one of these.
constexpr uint8_t kLeastRecordType = SSL3_RT_CHANGE_CIPHER_SPEC, kLargestRecordType = SSL3_RT_HANDSHAKE;

thread_local const TlsConnections::Beginning* beginning = nullptr;

// The facts about a connection. Its TLS object owns it, and only the thread that works with that object touches it.
struct Watched {
  std::shared_ptr<TlsConnections> connections;
  std::string host;
  std::string certificate;  // hash of the peer's; empty: it has shown none yet
  bool has_spoken = false;
  bool speaks_tls = true;
  int alert_sent = -1, alert_received = -1;
};

std::string HashOf(const X509* certificate) {
  uint8_t hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), hash, &size) != 1) return "";
  return std::string(reinterpret_cast<const char*>(hash), size);
}

std::string AlertName(int alert) { return absl::StrCat("\"", SSL_alert_desc_string_long(alert), "\""); }

std::string CertificateTrouble(long verified) {
  switch (verified) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "its certificate is of an unknown authority";
    default:
      return absl::StrCat("its certificate is not valid: ", X509_verify_cert_error_string(verified));
  }
}

std::string ReasonOf(const Watched& watched, const SSL* tls) {
  if (!watched.speaks_tls) return "it does not speak TLS, and this port wants TLS 1.3";
  if (watched.alert_sent == SSL_AD_CERTIFICATE_REQUIRED) return "it has shown no certificate";
  if (const long verified = SSL_get_verify_result(tls); verified != X509_V_OK) return CertificateTrouble(verified);
  if (watched.alert_sent == SSL_AD_PROTOCOL_VERSION || watched.alert_sent == SSL_AD_HANDSHAKE_FAILURE) {
    return "it has no version or cipher of TLS 1.3";
  }
  if (watched.alert_received >= 0) {
    return absl::StrCat("it has ended the handshake with the alert ", AlertName(watched.alert_received));
  }
  if (watched.alert_sent >= 0) return absl::StrCat("it breaks the protocol: alert ", AlertName(watched.alert_sent));
  return "it went away, or said nothing more, in the middle";
}

// The certificate has been verified when the client's last message of the handshake comes.
void NoteCertificate(Watched* watched, const SSL* tls) {
  if (!watched->certificate.empty()) return;
  watched->certificate = HashOf(SSL_get0_peer_certificate(tls));
  if (!watched->certificate.empty()) watched->connections->Add(watched->certificate, watched->host);
}

// OpenSSL calls it for everything that a connection sends or reads.
void OnMessage(int is_sent, int, int type, const void* bytes, size_t size, SSL* tls, void* argument) {
  auto* const watched = static_cast<Watched*>(argument);
  const auto* const octets = static_cast<const uint8_t*>(bytes);
  if (type == SSL3_RT_ALERT && size == 2 && octets[1] != SSL_AD_CLOSE_NOTIFY) {
    (is_sent != 0 ? watched->alert_sent : watched->alert_received) = octets[1];
  }
  if (is_sent != 0 || size == 0) return;
  if (type == SSL3_RT_HANDSHAKE && octets[0] == SSL3_MT_FINISHED) NoteCertificate(watched, tls);
  if (type != SSL3_RT_HEADER || watched->has_spoken) return;
  watched->has_spoken = true;
  watched->speaks_tls = octets[0] >= kLeastRecordType && octets[0] <= kLargestRecordType;
}

// Called for each TLS object of the process when it is made, at the end of SSL_new.
void OnNew(void* parent, void*, CRYPTO_EX_DATA* data, int index, long, void*) {
  if (beginning == nullptr || beginning->connections() == nullptr) return;
  auto* const tls = static_cast<SSL*>(parent);
  auto* const watched = new Watched;
  watched->connections = beginning->connections();
  watched->host = beginning->host();
  CRYPTO_set_ex_data(data, index, watched);
  SSL_set_msg_callback(tls, OnMessage);
  SSL_set_msg_callback_arg(tls, watched);
}

// Called when it goes, before its members do.
void OnFree(void* parent, void* pointer, CRYPTO_EX_DATA*, int, long, void*) {
  const std::unique_ptr<Watched> watched(static_cast<Watched*>(pointer));
  if (watched == nullptr) return;
  auto* const tls = static_cast<SSL*>(parent);
  SSL_set_msg_callback(tls, nullptr);
  if (!watched->certificate.empty()) watched->connections->Remove(watched->certificate, watched->host);
  if (watched->has_spoken && SSL_is_init_finished(tls) == 0) {
    watched->connections->Failed(watched->host, ReasonOf(*watched, tls));
  }
}

}  // namespace

TlsConnections::TlsConnections(HandshakeSink on_failed) : on_failed_(std::move(on_failed)) {
  // Once for the process: what is made before is not watched.
  static const int index = SSL_get_ex_new_index(0, nullptr, OnNew, nullptr, OnFree);
  (void)index;
}

void TlsConnections::Close() {
  absl::WriterMutexLock lock(&sink_mutex_);
  on_failed_ = nullptr;
}

std::string TlsConnections::HostsOf(absl::string_view pem) const {
  const absl::StatusOr<CertificatePtr> certificate = ParseCertificate(pem, "a certificate");
  if (!certificate.ok()) return "";
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(HashOf(certificate->get()));
  if (found == open_.end()) return "";
  std::vector<absl::string_view> hosts;
  for (const auto& [host, connections] : found->second) {
    if (hosts.size() < kMostHosts) hosts.push_back(host);
  }
  const size_t more = found->second.size() - hosts.size();
  return absl::StrCat(absl::StrJoin(hosts, " or "), more == 0 ? "" : absl::StrCat(" or ", more, " more"));
}

void TlsConnections::Add(const std::string& certificate, const std::string& host) {
  absl::MutexLock lock(&mutex_);
  ++open_[certificate][host];
}

void TlsConnections::Remove(const std::string& certificate, const std::string& host) {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, int>& hosts = open_[certificate];
  if (--hosts[host] <= 0) hosts.erase(host);
  if (hosts.empty()) open_.erase(certificate);
}

void TlsConnections::Failed(const std::string& host, const std::string& reason) const {
  absl::ReaderMutexLock lock(&sink_mutex_);
  if (on_failed_) on_failed_(host, reason);
}

TlsConnections::Beginning::Beginning(std::shared_ptr<TlsConnections> connections, std::string host)
    : connections_(std::move(connections)), host_(std::move(host)) {
  beginning = this;
}

TlsConnections::Beginning::~Beginning() { beginning = nullptr; }

}  // namespace terse
