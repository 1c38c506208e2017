#include "net/peer.h"

#include <gtest/gtest.h>

#include "tests/net/address.h"

namespace terse {
namespace {

TEST(Peer, WhoIsCountedTogether) {
  EXPECT_NE(PeerOf(Address("192.0.2.1")), PeerOf(Address("192.0.2.2")));
  EXPECT_EQ(PeerOf(Address("::ffff:192.0.2.1")), PeerOf(Address("192.0.2.1")));
  EXPECT_EQ(PeerOf(Address("2001:db8:0:1::1")), PeerOf(Address("2001:db8:0:1:ffff::2")));
  EXPECT_NE(PeerOf(Address("2001:db8:0:1::1")), PeerOf(Address("2001:db8:0:2::1")));
}

TEST(Peer, IsReadFromGrpcsText) {
  EXPECT_EQ(PeerOfText("ipv4:192.0.2.1:4455"), PeerOf(Address("192.0.2.1")));
  EXPECT_EQ(PeerOfText("ipv6:[2001:db8::1]:4455"), PeerOf(Address("2001:db8::1")));
  EXPECT_EQ(PeerOfText("ipv6:%5B2001:db8::1%5D:4455"), PeerOf(Address("2001:db8::1")));
  EXPECT_EQ(PeerOfText("ipv6:%5Bfe80::1%25eth0%5D:4455"), PeerOf(Address("fe80::1")));
  EXPECT_EQ(PeerOfText("ipv6:[::ffff:192.0.2.1]:4455"), PeerOf(Address("192.0.2.1")));
  for (const char* none : {"", "unix:", "unix:/run/terse:1", "ipv4:", "ipv4::1", "ipv4:example:1", "ipv6:[]:1"}) {
    EXPECT_EQ(PeerOfText(none), "") << none;
  }
}

TEST(Peer, IsWrittenForPeople) {
  EXPECT_EQ(PeerText(PeerOf(Address("192.0.2.1"))), "192.0.2.1");
  EXPECT_EQ(PeerText(PeerOf(Address("2001:db8:0:1::77"))), "2001:db8:0:1::/64");
  EXPECT_EQ(PeerText(""), "this machine");
}

TEST(Peer, KnowsThisMachine) {
  for (const char* own : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) EXPECT_TRUE(IsLoopback(Address(own)));
  for (const char* other : {"128.0.0.1", "192.0.2.1", "::2"}) EXPECT_FALSE(IsLoopback(Address(other))) << other;
}

TEST(Hosts, AreAddressesWithoutPorts) {
  EXPECT_EQ(HostTextOf("ipv4:192.0.2.1:4455"), "192.0.2.1");
  EXPECT_EQ(HostTextOf("ipv6:%5B2001:db8::1%5D:4455"), "2001:db8::1");
  EXPECT_EQ(HostTextOf("ipv6:[::ffff:192.0.2.1]:4455"), "192.0.2.1");
  EXPECT_EQ(HostTextOf("unix:/run/terse"), "this machine");
  EXPECT_EQ(HostOfSocket(-1), "this machine");
  EXPECT_EQ(NetworkOfHost("192.0.2.1"), PeerOfText("ipv4:192.0.2.1:1"));
  EXPECT_EQ(NetworkOfHost("2001:db8::1"), PeerOfText("ipv6:[2001:db8::2]:1"));
  EXPECT_EQ(NetworkOfHost("192.0.2.1 or 192.0.2.2"), "");
}

}  // namespace
}  // namespace terse
