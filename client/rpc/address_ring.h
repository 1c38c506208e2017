// The addresses at which a client looks for its coordinator.
#ifndef TERSE_CLIENT_RPC_ADDRESS_RING_H_
#define TERSE_CLIENT_RPC_ADDRESS_RING_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace terse {

// Several coordinators may share the runs, of which one serves: a client stays with the one that answers, and goes on
// to the next when it does not. Not thread-safe.
class AddressRing {
 public:
  // There is at least one.
  explicit AddressRing(std::vector<std::string> addresses) : addresses_(std::move(addresses)) {}

  const std::string& current() const { return addresses_[current_]; }
  bool has_several() const { return addresses_.size() > 1; }
  // How often nobody answered at any of them, since the last connection that was of use.
  int rounds() const { return rounds_; }
  // After a connection that was of use.
  void Reset() { failed_ = rounds_ = 0; }
  // After one that was not, or is over. True: nobody answers at any of them, so that it is time to wait.
  bool Next() {
    current_ = (current_ + 1) % addresses_.size();
    failed_ = (failed_ + 1) % addresses_.size();
    rounds_ += failed_ == 0 ? 1 : 0;
    return failed_ == 0;
  }

 private:
  const std::vector<std::string> addresses_;
  size_t current_ = 0;
  size_t failed_ = 0;  // in a row
  int rounds_ = 0;
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_ADDRESS_RING_H_
