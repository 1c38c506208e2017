// Throw-away certificates for a load over TLS.
#ifndef TERSE_BENCH_FLEET_LOAD_CERTIFICATES_H_
#define TERSE_BENCH_FLEET_LOAD_CERTIFICATES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace terse {

// Makes an authority and the TLS folders of a coordinator on 127.0.0.1 (DIRECTORY/coordinator) and of each client
// (DIRECTORY/NAME, LoadClientName), as `tersectl pki` does; all end in a day. Keys are made in several threads.
// Statuses of Authority and FileSystem.
absl::Status MakeLoadCertificates(int64_t clients, const std::string& directory);

// The folder of the coordinator.
std::string CoordinatorTlsFolder(const std::string& directory);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_CERTIFICATES_H_
