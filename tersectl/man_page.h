// tersectl(1), made of the command line itself.
#ifndef TERSE_TERSECTL_MAN_PAGE_H_
#define TERSE_TERSECTL_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace terse {

// The manual page of the program and all its commands, for troff with the macros of man(7).
std::string ManPage(const CLI::App& app);

}  // namespace terse

#endif  // TERSE_TERSECTL_MAN_PAGE_H_
