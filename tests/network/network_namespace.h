// Two hosts on one machine: network namespaces with a wire between them, for what a proxy cannot do to packets.
#ifndef TERSE_TESTS_NETWORK_NETWORK_NAMESPACE_H_
#define TERSE_TESTS_NETWORK_NETWORK_NAMESPACE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace terse {

// A veth pair between two namespaces of this process. Nothing of the machine's own network is touched. Removed with the
// object; what a killed test left behind is removed by the next one.
class TwoHosts {
 public:
  enum Host { kServer, kClients };

  // Returns what this machine lacks for the tests, in one line; empty when it has everything. Needs root, ip, tc and
  // iptables.
  static std::string Missing();

  TwoHosts();
  ~TwoHosts();
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  // Returns the words to put in front of a command line so that it runs on the host; the command dies with this
  // process.
  std::vector<std::string> Launcher(Host host) const;
  static std::string AddressOf(Host host);

  // Limits both directions to `rate` ("256kbit"), as tc spells it.
  void LimitRate(const std::string& rate);
  // Drops each packet that arrives on either host with this probability.
  void DropPackets(double probability);
  // Answers every TCP packet that arrives at the host from now on with RST; it goes no further.
  void Reject(Host host);
  // Ends what Reject began.
  void Accept(Host host);
  // Packets that were rejected at the host since Reject.
  int64_t Rejected(Host host) const;
  // Packets that were dropped, on both hosts.
  int64_t Dropped() const;
  // TCP segments that either host sent again, from its kernel.
  int64_t Retransmissions() const;

 private:
  std::string Name(Host host) const;
  // Runs it in the host's namespace; fails the test when it fails.
  std::string Run(Host host, std::vector<std::string> command) const;
  int64_t CountRule(Host host, const std::string& target) const;

  const std::string prefix_;
};

}  // namespace terse

#endif  // TERSE_TESTS_NETWORK_NETWORK_NAMESPACE_H_
