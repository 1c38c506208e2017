// The protection of a program's connections, as its command line sets it: for headers that have nothing to do with
// gRPC.
#ifndef TERSE_SECURITY_TRANSPORT_OPTIONS_H_
#define TERSE_SECURITY_TRANSPORT_OPTIONS_H_

#include <string>

#include "security/identity.h"

namespace terse {

struct TransportOptions {
  std::string tls_directory;  // as OpenTlsDirectory; empty: cleartext
  std::string server_name;    // of the coordinator's certificate; empty: the host of the address
  bool insecure = false;      // cleartext also to and from other machines
  bool relay = false;         // the folder is a relay's, which listens and calls with the same certificate
};

// Returns the role that the folder's certificate must have where other programs than relays are `role`.
inline Role RoleWith(const TransportOptions& options, Role role) { return options.relay ? Role::kRelay : role; }

}  // namespace terse

#endif  // TERSE_SECURITY_TRANSPORT_OPTIONS_H_
