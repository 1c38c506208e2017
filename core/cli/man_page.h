// Manual pages, made of the command line itself.
#ifndef TERSE_CORE_CLI_MAN_PAGE_H_
#define TERSE_CORE_CLI_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace terse {

// Sections of the manual: 1 has what users start, 8 what an administrator's machine runs as a service.
inline constexpr int kUserCommands = 1;
inline constexpr int kDaemons = 8;

// Returns the manual page of the program and all its commands, for troff with the macros of man(7). The program's
// footer is the section on exit codes.
std::string ManPage(const CLI::App& program, int section);

}  // namespace terse

#endif  // TERSE_CORE_CLI_MAN_PAGE_H_
