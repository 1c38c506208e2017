// A tree of real processes: a coordinator, relays below it, and the clients of each relay. All train on the grid, so
// the books of the whole tree balance bit for bit. Relays keep their state in their directories, or one relay in a
// PostgreSQL database, with two processes that take it over from each other.
#ifndef TERSE_TESTS_E2E_RELAY_TREE_H_
#define TERSE_TESTS_E2E_RELAY_TREE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/e2e/fleet_processes.h"

namespace terse {

class RelayTree {
 public:
  struct Shape {
    int relays = 2;
    int clients_each = 2;
    int rounds = 100;
    bool forwards = false;  // the relays do, and do not recompress
    bool moves = false;     // clients know the other relays' addresses too, and the root goes on with a single relay
    std::string store;      // --store of the processes of the relay, which is one then
    bool tcp = false;       // they speak TCP and not by Unix sockets, so that a network can be between them
  };

  explicit RelayTree(const Shape& shape);

  // Has everybody who would connect to the address go through another one. Before anything is started.
  void Route(const std::string& address, const std::string& through) { routes_[address] = through; }

  // Starts everything; a part that runs is started anew.
  void Start();
  void StartRoot();
  // Its only process, or the one of that number.
  void StartRelay(int relay, int process = 0);
  // The client of that number of the relay.
  void StartClient(int relay, int client);

  int processes() const { return 1 + static_cast<int>(relays_.size() + clients_.size()); }
  // Kills process number `which` in the order root, relays, clients, and starts it again after `pause`.
  void KillAndRestart(int which, absl::Duration pause);

  // Committed rounds at the root; -1 before there are any.
  int64_t Version() const;
  bool WaitForRounds(int64_t rounds, absl::Duration timeout) const;
  // Returns the process that has the lease of a relay with a store; -1: none of them.
  int Serving() const;
  // Waits until every client has ended with the run, and ends the relays and the root.
  void Finish(absl::Duration timeout);
  // What the processes have printed, for messages.
  std::string Outputs() const;

  // After Finish: the books of the whole tree balance bit for bit (tests/testing/tree_books.h), and no update is
  // applied twice. Every round of a relay had `clients_each` updates.
  void ExpectBooksBalance() const;
  // Updates that are counted as lost, anywhere in the tree.
  int64_t Resets() const;

  std::string root_state() const { return directory_ / "root"; }
  std::string root_address() const { return AddressOf(root_state()); }
  std::string relay_state(int relay, int process = 0) const;
  std::string client_state(int relay, int client) const;
  // The directory of the run that the process with this state directory serves.
  static std::string RunOf(const std::string& state) { return state + "/runs/tree"; }
  // Where the process serves clients.
  std::string relay_address(int relay, int process = 0) const { return AddressOf(relay_state(relay, process)); }
  Process& root() { return *root_; }
  Process& relay(int relay, int process = 0) { return *relays_[PlaceOfRelay(relay, process)]; }
  Process& client(int relay, int client) { return *clients_[PlaceOf(relay, client)]; }

 private:
  // Returns the number of processes of each relay.
  int processes_each() const { return shape_.store.empty() ? 1 : 2; }
  // In relays_.
  size_t PlaceOfRelay(int relay, int process) const {
    return static_cast<size_t>(relay) * static_cast<size_t>(processes_each()) + static_cast<size_t>(process);
  }
  // In clients_.
  size_t PlaceOf(int relay, int client) const {
    return static_cast<size_t>(relay) * static_cast<size_t>(shape_.clients_each) + static_cast<size_t>(client);
  }
  // Where the server with this state directory is found, also after it has started again.
  std::string AddressOf(const std::string& state) const;
  // The address at which others look for it.
  std::string SeenAt(const std::string& address) const;
  // The addresses at which a relay's clients look, its own first.
  std::string AddressesFor(int relay) const;
  // The directory that has the relay's state, copied there from its store if it has one.
  std::string StateOf(int relay) const;
  std::unique_ptr<Process> StartServer(const std::string& program, const std::string& state,
                                       std::vector<std::string> extra);

  const Shape shape_;
  ScratchDirectory directory_;
  const std::string host_;
  mutable std::map<std::string, std::string> addresses_;  // of servers that speak TCP, by their state
  std::map<std::string, std::string> routes_;
  int starts_ = 0;
  std::unique_ptr<Process> root_;
  std::vector<std::unique_ptr<Process>> relays_, clients_;
};

}  // namespace terse

#endif  // TERSE_TESTS_E2E_RELAY_TREE_H_
