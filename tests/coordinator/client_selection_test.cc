// Pages of clients: filtered, sorted, counted.
#include "coordinator/rpc/client_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// client-0 to client-11: the even ones train, the others are away.
v1::ClientsReply All() {
  v1::ClientsReply all;
  all.set_version(20);
  for (uint32_t i = 0; i < 12; ++i) {
    v1::Client* const client = all.add_clients();
    client->set_index(i);
    client->set_name(absl::StrCat(i == 5 ? "Client-" : "client-", i));
    client->set_connected(i % 2 == 0);
    client->set_state(i % 2 == 0 ? "training" : "away");
    client->set_version(i);
    client->set_wire_bytes_up(100 - i);
    if (i % 3 == 0) client->set_residual_norm(i);
  }
  return all;
}

v1::ClientsRequest Sorted(const std::string& column, bool descending, uint32_t count) {
  v1::ClientsRequest request;
  request.set_sort(column);
  request.set_descending(descending);
  request.set_count(count);
  return request;
}

std::vector<int> IndexesOf(const v1::ClientsRequest& request, v1::ClientsReply* reply) {
  *reply = All();
  EXPECT_TRUE(SelectClients(request, reply).ok());
  std::vector<int> indexes;
  for (const v1::Client& client : reply->clients()) indexes.push_back(static_cast<int>(client.index()));
  return indexes;
}

std::vector<int> IndexesOf(const v1::ClientsRequest& request) {
  v1::ClientsReply reply;
  return IndexesOf(request, &reply);
}

TEST(ClientSelectionTest, WithoutParametersAllByIndex) {
  v1::ClientsReply reply;
  EXPECT_EQ(IndexesOf({}, &reply).size(), 12);
  EXPECT_EQ(reply.clients(3).name(), "client-3");
  EXPECT_EQ(reply.version(), 20);
  EXPECT_EQ(reply.known(), 12);
  EXPECT_EQ(reply.found(), 12);
  ASSERT_EQ(reply.states_size(), 2);
  EXPECT_EQ(reply.states(0).ShortDebugString(), "state: \"away\" clients: 6");
}

TEST(ClientSelectionTest, APageOfThem) {
  v1::ClientsRequest request = Sorted("name", false, 4);
  request.set_skip(9);
  v1::ClientsReply reply;
  EXPECT_THAT(IndexesOf(request, &reply), ElementsAre(9, 10, 11));
  EXPECT_EQ(reply.found(), 12);
  request.set_skip(12);
  EXPECT_THAT(IndexesOf(request), IsEmpty());
  request.set_skip(4'000'000'000);
  EXPECT_THAT(IndexesOf(request), IsEmpty());
}

TEST(ClientSelectionTest, NamesCountAsPeopleDo) {
  EXPECT_THAT(IndexesOf(Sorted("name", false, 12)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(IndexesOf(Sorted("name", true, 3)), ElementsAre(11, 10, 9));
}

TEST(ClientSelectionTest, TheUnknownComesLastAndEqualOnesByIndex) {
  EXPECT_THAT(IndexesOf(Sorted("residual", false, 5)), ElementsAre(0, 3, 6, 9, 1));
  EXPECT_THAT(IndexesOf(Sorted("residual", true, 5)), ElementsAre(9, 6, 3, 0, 1));
  EXPECT_THAT(IndexesOf(Sorted("lag", true, 7)), ElementsAre(0, 2, 4, 6, 8, 10, 1));
  EXPECT_THAT(IndexesOf(Sorted("up", false, 2)), ElementsAre(11, 10));
  EXPECT_THAT(IndexesOf(Sorted("state", false, 7)), ElementsAre(1, 3, 5, 7, 9, 11, 0));
}

TEST(ClientSelectionTest, Filters) {
  v1::ClientsRequest request;
  request.set_name("T-1");
  v1::ClientsReply reply;
  EXPECT_THAT(IndexesOf(request, &reply), ElementsAre(1, 10, 11));
  EXPECT_EQ(reply.known(), 12);
  EXPECT_EQ(reply.found(), 3);
  request.set_state("training");
  EXPECT_THAT(IndexesOf(request, &reply), ElementsAre(10));
  EXPECT_EQ(reply.states_size(), 2) << "of all clients";
  request.set_state("asleep");
  EXPECT_THAT(IndexesOf(request, &reply), IsEmpty());
  EXPECT_EQ(reply.found(), 0);
}

TEST(ClientSelectionTest, AnUnknownColumn) {
  v1::ClientsReply reply = All();
  const absl::Status status = SelectClients(Sorted("height", false, 1), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("not sorted by 'height', but by one of these: index, name, state"));
}

// The rank of a name is the same as that of its digits read as a number, also where they are many or have zeros before.
TEST(ClientSelectionTest, DigitsOfAnyLength) {
  v1::ClientsReply reply;
  const std::vector<std::string> names = {"a", "a1", "a002", "a9", "a10", "a9999999999999", "a12345678901234", "ab"};
  for (size_t i = 0; i < names.size(); ++i) {
    v1::Client* const client = reply.add_clients();
    client->set_index(static_cast<uint32_t>((5 * i) % names.size()));
    client->set_name(names[(5 * i) % names.size()]);
  }
  ASSERT_TRUE(SelectClients(Sorted("name", false, 0), &reply).ok());
  std::vector<std::string> sorted;
  for (const v1::Client& client : reply.clients()) sorted.push_back(client.name());
  EXPECT_EQ(sorted, names);
}

}  // namespace
}  // namespace terse
