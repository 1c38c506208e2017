#include "core/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terse {
namespace {

using ::testing::HasSubstr;

std::string Why(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ParseHostPort, TakesAddressesApart) {
  struct Row {
    const char* address;
    const char* host;
    int port;
  };
  for (const Row& row : {Row{"localhost:7700", "localhost", 7700}, Row{"10.0.0.1:0", "10.0.0.1", 0},
                         Row{"a.example:65535", "a.example", 65535}, Row{"[::1]:7700", "::1", 7700},
                         Row{"[fe80::1%eth0]:1", "fe80::1%eth0", 1}}) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(row.address);
    ASSERT_TRUE(parsed.ok()) << row.address << parsed.status();
    EXPECT_EQ(parsed->host, row.host);
    EXPECT_EQ(parsed->port, row.port);
    EXPECT_EQ(HostPortText(*parsed), row.address);
  }
}

TEST(ParseHostPort, RefusesWhatIsNoAddress) {
  for (const char* bad :
       {"", "7700", "localhost", "localhost:", ":7700", "localhost:x", "localhost:-1", "localhost:+1", "localhost: 1",
        "::1:7700", "[]:1", "[::1]", "[::1", "[::1:80", "a b:1", "dns:///h:1", "]:1", "unix:/run/x.sock:1"}) {
    EXPECT_THAT(Why(ParseHostPort(bad).status()), HasSubstr("is no address; give HOST:PORT")) << bad;
  }
}

TEST(ParseHostPort, RefusesPortsAbove65535) {
  EXPECT_EQ(Why(ParseHostPort("h:65536").status()), "'h:65536' has the port 65536; ports go up to 65535");
  EXPECT_THAT(Why(ParseHostPort("h:99999999999999999999").status()), HasSubstr("ports go up to 65535"));
}

TEST(CheckDialAddress, WantsAPort) {
  EXPECT_TRUE(CheckDialAddress("h:1").ok());
  EXPECT_THAT(Why(CheckDialAddress("h:0")), HasSubstr("port 0 of 'h:0'"));
  EXPECT_THAT(Why(CheckDialAddress("h:70000")), HasSubstr("65535"));
}

TEST(IsUnixSocket, KnowsTheScheme) {
  EXPECT_TRUE(IsUnixSocket("unix:/run/terse/admin.sock"));
  EXPECT_FALSE(IsUnixSocket("unix"));
  EXPECT_FALSE(IsUnixSocket("localhost:1"));
}

}  // namespace
}  // namespace terse
