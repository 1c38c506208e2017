// Addresses of the loopback interface for servers that are to be found again after a restart.
#ifndef TERSE_TESTS_E2E_FREE_ADDRESS_H_
#define TERSE_TESTS_E2E_FREE_ADDRESS_H_

#include <string>

namespace terse {

// An address, without a port, that only one caller of this machine has, so that nobody else takes a port of a server
// that is about to start again.
std::string OwnHost();

// HOST:PORT, with a port of the host that was free just now.
std::string FreeAddress(const std::string& host);

}  // namespace terse

#endif  // TERSE_TESTS_E2E_FREE_ADDRESS_H_
