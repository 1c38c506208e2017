#include "tests/network/network_namespace.h"

#include <signal.h>
#include <unistd.h>

#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/e2e/fleet_processes.h"

namespace terse {
namespace {

constexpr char kPrefix[] = "terse-net-";
constexpr TwoHosts::Host kBoth[] = {TwoHosts::kServer, TwoHosts::kClients};

bool Succeeds(const std::vector<std::string>& command) {
  int code = -1;
  RunCommand(command, &code);
  return code == 0;
}

std::string MustRun(const std::vector<std::string>& command) {
  int code = -1;
  std::string output = RunCommand(command, &code);
  EXPECT_EQ(code, 0) << absl::StrJoin(command, " ") << ": " << output;
  return output;
}

void RemoveNamespace(const std::string& name) {
  int code = -1;
  const std::string processes = RunCommand({"ip", "netns", "pids", name}, &code);
  for (absl::string_view line : absl::StrSplit(processes, '\n', absl::SkipWhitespace())) {
    int pid = 0;
    if (code == 0 && absl::SimpleAtoi(line, &pid)) kill(pid, SIGKILL);
  }
  MustRun({"ip", "netns", "del", name});
}

// Removes the namespaces of tests that were killed: their process is no more.
void RemoveStale() {
  for (absl::string_view line : absl::StrSplit(MustRun({"ip", "netns", "list"}), '\n', absl::SkipWhitespace())) {
    const std::string name(line.substr(0, line.find(' ')));
    int pid = 0;
    if (!absl::StartsWith(name, kPrefix)) continue;
    const std::vector<std::string> parts = absl::StrSplit(name.substr(sizeof(kPrefix) - 1), '-');
    if (absl::SimpleAtoi(parts[0], &pid) && kill(pid, 0) != 0) RemoveNamespace(name);
  }
}

}  // namespace

std::string TwoHosts::Missing() {
  if (geteuid() != 0) return "network namespaces need root";
  if (!Succeeds({"sh", "-c", "command -v ip tc iptables setpriv"})) {
    return "network namespaces need ip, tc, iptables and setpriv: deploy/packages.sh test";
  }
  const std::string name = absl::StrCat(kPrefix, getpid(), "-probe");
  if (!Succeeds({"ip", "netns", "add", name})) return "this machine allows no network namespaces (ip netns add)";
  const std::vector<std::string> in = {"ip", "netns", "exec", name};
  const auto works = [&in](std::vector<std::string> command) {
    command.insert(command.begin(), in.begin(), in.end());
    return Succeeds(command);
  };
  std::string missing;
  if (!works({"ip", "link", "add", "name", "near", "type", "veth", "peer", "name", "far"})) {
    missing = "this kernel has no veth";
  } else if (!works({"tc", "qdisc", "add", "dev", "near", "root", "tbf", "rate", "1mbit", "burst", "4k", "latency",
                     "1s"})) {
    missing = "this kernel has no tbf (sch_tbf)";
  } else if (!works({"iptables", "-A", "INPUT", "-m", "statistic", "--mode", "random", "--probability", "0.05", "-j",
                     "DROP"}) ||
             !works({"iptables", "-A", "INPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"})) {
    missing = "this kernel's iptables has no statistic match or no REJECT";
  }
  RemoveNamespace(name);
  return missing;
}

TwoHosts::TwoHosts() : prefix_(absl::StrCat(kPrefix, getpid())) {
  RemoveStale();
  for (Host host : kBoth) {
    MustRun({"ip", "netns", "add", Name(host)});
    Run(host, {"ip", "link", "set", "lo", "up"});
  }
  Run(kServer, {"ip", "link", "add", "name", "wire", "type", "veth", "peer", "name", "wire", "netns", Name(kClients)});
  for (Host host : kBoth) {
    Run(host, {"ip", "addr", "add", AddressOf(host) + "/24", "dev", "wire"});
    Run(host, {"ip", "link", "set", "wire", "up"});
  }
}

TwoHosts::~TwoHosts() {
  for (Host host : kBoth) RemoveNamespace(Name(host));
}

std::string TwoHosts::Name(Host host) const { return prefix_ + (host == kServer ? "-server" : "-clients"); }

std::string TwoHosts::AddressOf(Host host) { return host == kServer ? "10.77.0.1" : "10.77.0.2"; }

std::vector<std::string> TwoHosts::Launcher(Host host) const {
  return {"setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", Name(host)};
}

std::string TwoHosts::Run(Host host, std::vector<std::string> command) const {
  const std::vector<std::string> in = {"ip", "netns", "exec", Name(host)};
  command.insert(command.begin(), in.begin(), in.end());
  return MustRun(command);
}

void TwoHosts::LimitRate(const std::string& rate) {
  for (Host host : kBoth) {
    Run(host, {"tc", "qdisc", "add", "dev", "wire", "root", "tbf", "rate", rate, "burst", "4k", "latency", "1s"});
  }
}

void TwoHosts::DropPackets(double probability) {
  for (Host host : kBoth) {
    Run(host, {"iptables", "-A", "INPUT", "-i", "wire", "-m", "statistic", "--mode", "random", "--probability",
               absl::StrCat(probability), "-j", "DROP"});
  }
}

void TwoHosts::Reject(Host host) {
  Run(host, {"iptables", "-I", "INPUT", "-i", "wire", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"});
}

void TwoHosts::Accept(Host host) {
  Run(host, {"iptables", "-D", "INPUT", "-i", "wire", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"});
}

int64_t TwoHosts::CountRule(Host host, const std::string& target) const {
  int64_t count = 0;
  // Each line has packets, bytes, target...
  for (absl::string_view line :
       absl::StrSplit(Run(host, {"iptables", "-nvxL", "INPUT"}), '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    int64_t packets = 0;
    if (fields.size() > 2 && fields[2] == target && absl::SimpleAtoi(fields[0], &packets)) count += packets;
  }
  return count;
}

int64_t TwoHosts::Rejected(Host host) const { return CountRule(host, "REJECT"); }

int64_t TwoHosts::Dropped() const { return CountRule(kServer, "DROP") + CountRule(kClients, "DROP"); }

int64_t TwoHosts::Retransmissions() const {
  int64_t total = 0;
  for (Host host : kBoth) {
    // Two lines begin with "Tcp:", names and values.
    std::vector<std::string> names;
    for (absl::string_view line : absl::StrSplit(Run(host, {"cat", "/proc/net/snmp"}), '\n')) {
      if (!absl::StartsWith(line, "Tcp:")) continue;
      const std::vector<std::string> fields = absl::StrSplit(line, ' ');
      for (size_t i = 0; i < names.size() && i < fields.size(); ++i) {
        int64_t value = 0;
        if (names[i] == "RetransSegs" && absl::SimpleAtoi(fields[i], &value)) total += value;
      }
      names = fields;
    }
  }
  return total;
}

}  // namespace terse
