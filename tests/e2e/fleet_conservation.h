// The books of a fleet of grid clients after its run: what the coordinator applied from a client plus that client's
// residual is the sum of the client's deltas, bit for bit (invariants I1 and I2 of docs/PROTOCOL.md).
#ifndef TERSE_TESTS_E2E_FLEET_CONSERVATION_H_
#define TERSE_TESTS_E2E_FLEET_CONSERVATION_H_

#include <cstdint>
#include <functional>
#include <string>

namespace terse {

inline constexpr int kClients = 3;
inline constexpr int kRounds = 400;

// No checkpoint but the first, so that the log keeps every update. With bf16 means all values stay on a dyadic grid, on
// which float additions are exact.
std::string ConservationRunFile(const std::string& durability, const std::string& positions = "auto",
                                int64_t rounds = kRounds);

// `run_state` is the run's directory, which nobody has open, and `client_state` that of the client process with a
// number. All clients took part in every round.
void ExpectConservation(const std::string& run_state, const std::function<std::string(int)>& client_state,
                        const std::string& positions = "auto", int64_t rounds = kRounds);

}  // namespace terse

#endif  // TERSE_TESTS_E2E_FLEET_CONSERVATION_H_
