// Checks of what stands on a command line: numbers, words of a list, addresses, files.
//
// Each returns a CLI::Validator for Option::check, or for Option::transform where it says so. What it refuses gets a
// reason and a remedy, "'onnx' is not allowed; give torchscript or state", which ReadCommandLine puts behind the
// option's name. Its description, which --help shows, names what is allowed.
#ifndef TERSE_CORE_CLI_CHECKS_H_
#define TERSE_CORE_CLI_CHECKS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace terse {

// A whole number from `least` to `most` in decimal digits, without sign, leading zeros or fraction.
CLI::Validator WholeNumber(uint64_t least = 0, uint64_t most = std::numeric_limits<uint64_t>::max());
// A finite number from `least` to `most`.
CLI::Validator Number(double least, double most = std::numeric_limits<double>::max());
// A finite number above zero.
CLI::Validator NumberAboveZero();
// One of the words, as they are written. They have no comma and no brace.
CLI::Validator OneOf(std::vector<std::string> words);
// For transform: bytes as a number with or without a unit, "5MB" or "4MiB", which becomes the number of bytes.
CLI::Validator AmountOfBytes();

// Whether unix:PATH may stand in place of HOST:PORT; the path itself is looked at where it is used.
enum class UnixSockets { kRefused, kAllowed };
// HOST:PORT that one can connect to, as CheckDialAddress.
CLI::Validator DialAddress(UnixSockets unix_sockets = UnixSockets::kRefused);
// HOST:PORT to listen on, where port 0 takes a free one.
CLI::Validator ListenAddress(UnixSockets unix_sockets = UnixSockets::kRefused);

CLI::Validator ExistingFile();
CLI::Validator ExistingFolder();

}  // namespace terse

#endif  // TERSE_CORE_CLI_CHECKS_H_
