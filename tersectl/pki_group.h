// The part of tersectl's command line that is about certificates.
#ifndef TERSE_TERSECTL_PKI_GROUP_H_
#define TERSE_TERSECTL_PKI_GROUP_H_

#include <CLI/CLI.hpp>

#include "tersectl/invocation.h"

namespace terse {

// Adds the group `pki`. Both must outlive the parsing.
void AddPki(CLI::App& program, Invocation* invocation);

}  // namespace terse

#endif  // TERSE_TERSECTL_PKI_GROUP_H_
