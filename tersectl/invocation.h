// The parsed command line of tersectl, and the functions that add a command to it.
#ifndef TERSE_TERSECTL_INVOCATION_H_
#define TERSE_TERSECTL_INVOCATION_H_

#include <CLI/CLI.hpp>

#include "tersectl/commands.h"

namespace terse {

using Remote = absl::Status (*)(AdminClient&, const CommandOptions&, const Terminal&);
using Local = absl::Status (*)(const CommandOptions&, const Terminal&);
using OfItself = absl::Status (*)(const CLI::App&, const CommandOptions&, const Terminal&);  // about the command line

struct Invocation {
  CommandOptions options;
  // One of these.
  Remote remote = nullptr;
  Local local = nullptr;
  OfItself of_itself = nullptr;
};

// Adds a command to a program or group. `invocation` must outlive its parsing.
inline CLI::App* AddRemote(CLI::App& app, const char* name, const char* help, Remote command, Invocation* invocation) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->callback([=] { invocation->remote = command; });
  return sub;
}

inline CLI::App* AddLocal(CLI::App& app, const char* name, const char* help, Local command, Invocation* invocation) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->callback([=] { invocation->local = command; });
  return sub;
}

}  // namespace terse

#endif  // TERSE_TERSECTL_INVOCATION_H_
