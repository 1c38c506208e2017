// The address of a PostgreSQL server and its protection: what is sent to another machine goes over TLS with a checked
// certificate, and no address has a password. Internal to storage/.
#ifndef TERSE_STORAGE_POSTGRES_ADDRESS_H_
#define TERSE_STORAGE_POSTGRES_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

struct pg_conn;

namespace terse {

// Returns the sslmode that an address (PostgresDb::Open) is to be used with; nullopt: its own. INVALID_ARGUMENT when it
// cannot be read, has a password, or names another machine with an sslmode that does not check the certificate.
absl::StatusOr<absl::optional<std::string>> SslModeFor(const std::string& address);

// INVALID_ARGUMENT when the open connection goes to another machine whose certificate was not checked: a service file
// may have named the host, and a name may mean any address. `place` begins the message.
absl::Status CheckProtection(pg_conn* connection, absl::string_view place);

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_ADDRESS_H_
