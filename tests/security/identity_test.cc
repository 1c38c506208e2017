#include "security/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(IdentityTest, UrisOfAllRolesRoundTrip) {
  EXPECT_EQ(AllRoles().size(), 5u);
  for (const Role role : AllRoles()) {
    const Identity identity{role, "Berlin-1_a.b"};
    const auto back = IdentityFromUri(ToUri(identity));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == identity);
    EXPECT_EQ(*ParseRole(RoleName(role)), role);
  }
  EXPECT_EQ(ToUri({Role::kClient, "berlin-1"}), "terse:client:berlin-1");
  EXPECT_EQ(ToUri({Role::kRelay, "hub"}), "terse:relay:hub");
  EXPECT_EQ(ToUri({Role::kOperator, "x"}), "terse:operator:x");
}

TEST(IdentityTest, ARelayIsAClientAndServes) {
  const auto those_that = [](bool (*does)(Role)) {
    std::vector<std::string> names;
    for (const Role role : AllRoles()) {
      if (does(role)) names.emplace_back(RoleName(role));
    }
    return names;
  };
  EXPECT_THAT(those_that(Serves), ElementsAre("coordinator", "relay"));
  EXPECT_THAT(those_that(Calls), ElementsAre("client", "relay", "observer", "operator"));
  EXPECT_THAT(those_that(TakesPart), ElementsAre("client", "relay"));
}

TEST(IdentityTest, OtherUrisAreRefused) {
  const std::string longest(64, 'a');
  EXPECT_TRUE(IdentityFromUri("terse:client:" + longest).ok());
  for (const std::string& uri :
       {std::string(), std::string("terse:"), std::string("terse:client"), std::string("terse:client:"),
        std::string("terse::x"), std::string("terse:Client:x"), std::string("TERSE:client:x"),
        std::string("terse:root:x"), std::string("terse:client:a:b"), std::string("terse:client:.x"),
        std::string("terse:client:a/b"), std::string("terse:client:a b"), std::string("terse:client:a\0b", 16),
        std::string("terse:client:a\n"), std::string(" terse:client:x"), std::string("https://x"),
        "terse:client:" + longest + "a"}) {
    EXPECT_EQ(IdentityFromUri(uri).status().code(), absl::StatusCode::kInvalidArgument) << uri;
  }
}

TEST(IdentityTest, ErrorsSayWhatThereIsAndStayShort) {
  EXPECT_THAT(std::string(ParseRole("admin").status().message()),
              HasSubstr("coordinator, client, relay, observer and operator"));
  EXPECT_LT(IdentityFromUri(std::string(1 << 20, '\x01')).status().message().size(), 1000u);
  EXPECT_LT(IdentityFromUri("terse:" + std::string(1 << 20, 'x') + ":n").status().message().size(), 1000u);
}

TEST(IdentityTest, RoleAndNameMakeAnIdentity) {
  EXPECT_FALSE((Identity{Role::kClient, "a"} == Identity{Role::kOperator, "a"}));
  EXPECT_FALSE((Identity{Role::kClient, "a"} == Identity{Role::kClient, "b"}));
}

}  // namespace
}  // namespace terse
