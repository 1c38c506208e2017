// Throw-away certificates for a load over TLS.
#ifndef TERSE_BENCH_FLEET_LOAD_CERTIFICATES_H_
#define TERSE_BENCH_FLEET_LOAD_CERTIFICATES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace terse {

// Makes an authority and the TLS folders of a coordinator and its relays on 127.0.0.1 (ServerTlsFolder), and of each
// client (DIRECTORY/NAME, LoadClientName), as `tersectl pki` does; all end in a day. Keys are made in several threads.
// Statuses of Authority and FileSystem.
absl::Status MakeLoadCertificates(int64_t clients, int64_t relays, const std::string& directory);

// The name of a load's relay, and of its certificate.
std::string LoadRelayName(int64_t number);

inline constexpr char kLoadCoordinatorName[] = "coordinator";
// The folder of the coordinator or of a relay, by its name.
std::string ServerTlsFolder(const std::string& directory, const std::string& name);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_CERTIFICATES_H_
