// The parsed command line of tersectl, and the functions that add a command to it.
#ifndef TERSE_TERSECTL_INVOCATION_H_
#define TERSE_TERSECTL_INVOCATION_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "tersectl/commands.h"
#include "tersectl/exit_codes.h"

namespace terse {

// The command that was given, with its options.
struct Invocation {
  CommandOptions options;
  // One of these.
  std::function<absl::Status(AdminClient&, const CommandOptions&, const Terminal&)> remote;
  std::function<absl::Status(const CommandOptions&, const Terminal&)> local;
  ExitCodes exit_codes;
};

// A command as it was added: its own options are set while the command line is read.
template <typename Options>
struct AddedCommand {
  CLI::App* app;
  Options* options;
};

template <typename Options>
using RemoteCommand = absl::Status (*)(AdminClient&, const Options&, const Terminal&);
template <typename Options>
using LocalCommand = absl::Status (*)(const Options&, const Terminal&);

// Add a command to a program or group. `invocation` must outlive its parsing.
template <typename Options>
AddedCommand<Options> AddRemote(CLI::App& app, const char* name, const char* help, RemoteCommand<Options> command,
                                Invocation* invocation, const ExitCodes& exit_codes = kRemoteCodes) {
  const auto options = std::make_shared<Options>();
  CLI::App* const sub = app.add_subcommand(name, help);
  sub->callback([=] {
    invocation->exit_codes = exit_codes;
    invocation->remote = [=](AdminClient& client, const CommandOptions& common, const Terminal& terminal) {
      static_cast<CommandOptions&>(*options) = common;
      return command(client, *options, terminal);
    };
  });
  return {sub, options.get()};
}

template <typename Options>
AddedCommand<Options> AddLocal(CLI::App& app, const char* name, const char* help, LocalCommand<Options> command,
                               Invocation* invocation, const ExitCodes& exit_codes = kLocalCodes) {
  const auto options = std::make_shared<Options>();
  CLI::App* const sub = app.add_subcommand(name, help);
  sub->callback([=] {
    invocation->exit_codes = exit_codes;
    invocation->local = [=](const CommandOptions& common, const Terminal& terminal) {
      static_cast<CommandOptions&>(*options) = common;
      return command(*options, terminal);
    };
  });
  return {sub, options.get()};
}

}  // namespace terse

#endif  // TERSE_TERSECTL_INVOCATION_H_
