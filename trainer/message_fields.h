// Structures that travel between two processes, member by member.
#ifndef TERSE_TRAINER_MESSAGE_FIELDS_H_
#define TERSE_TRAINER_MESSAGE_FIELDS_H_

#include <type_traits>
#include <vector>

#include "absl/types/optional.h"

// The body of a function Fields(io, whole): all members of `whole`, in order, with their names. It does not compile
// when one is left out, so that a structure cannot grow a member that the other process never sees.
#define TERSE_FIELDS(...)      \
  auto& [__VA_ARGS__] = whole; \
  io(#__VA_ARGS__, __VA_ARGS__)

namespace terse {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<absl::optional<T>> : std::true_type {};

}  // namespace terse

#endif  // TERSE_TRAINER_MESSAGE_FIELDS_H_
