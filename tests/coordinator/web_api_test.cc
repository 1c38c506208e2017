// The API's JSON, from an admin service that says what the test wants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/web/api.h"
#include "proto/proto_text.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/fake_clock.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Notes what it was asked.
class Recorder : public FakeAdminServer {
 public:
  grpc::Status ListRounds(grpc::ServerContext* context, const v1::RoundsRequest* request,
                          v1::RoundsReply* reply) override {
    asked.Add()->assign(request->ShortDebugString());
    return FakeAdminServer::ListRounds(context, request, reply);
  }
  grpc::Status ListEvents(grpc::ServerContext* context, const v1::EventsRequest* request,
                          v1::EventsReply* reply) override {
    asked.Add()->assign(request->ShortDebugString());
    return FakeAdminServer::ListEvents(context, request, reply);
  }
  grpc::Status ListClients(grpc::ServerContext* context, const v1::ClientsRequest* request,
                           v1::ClientsReply* reply) override {
    asked.Add()->assign(request->ShortDebugString());
    return FakeAdminServer::ListClients(context, request, reply);
  }
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::StatusRequest* request, v1::Status* reply) override {
    asked.Add()->assign(request->ShortDebugString());
    if (request->run() == "none") return grpc::Status(grpc::StatusCode::NOT_FOUND, "no run 'none' is served here");
    return FakeAdminServer::GetStatus(context, request, reply);
  }

  google::protobuf::RepeatedPtrField<std::string> asked;
};

class WebApiTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<HttpServer>> server =
        HttpServer::Start({"127.0.0.1:0", false, nullptr, nullptr}, ApiRoutes(&admin_, &clock_));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  json Get(const std::string& path, int code = 200) {
    const httplib::Result reply = httplib::Client(server_->url()).Get("/api/v1/" + path);
    if (!reply) return nullptr;
    EXPECT_EQ(reply->status, code) << path << ": " << reply->body;
    EXPECT_EQ(reply->get_header_value("Content-Type"), "application/json");
    return json::parse(reply->body);
  }
  std::string LastAsked() { return admin_.asked.empty() ? "" : admin_.asked.at(admin_.asked.size() - 1); }

  Recorder admin_;
  FakeClock clock_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(WebApiTest, RunsAndTheirState) {
  v1::Run run;
  run.set_name("lenet5");
  run.set_version(7);
  admin_.runs = {run};
  admin_.status.set_run("lenet5");
  admin_.status.set_model_hash(std::string("\x01\xff", 2));
  EXPECT_EQ(Get("runs").at("runs").at(0).at("version"), 7);
  const json status = Get("runs/lenet5");
  EXPECT_EQ(status.at("model_hash"), "01ff");
  EXPECT_TRUE(status.contains("phase"));
  EXPECT_EQ(LastAsked(), "run: \"lenet5\"");
  EXPECT_EQ(Get("runs/none", 404).at("error"), "no run 'none' is served here");
  const int asked = admin_.asked.size();
  for (const char* name : {"%ff", "%00", "a%0ab"}) EXPECT_EQ(Get(std::string("runs/") + name, 404).size(), 1) << name;
  EXPECT_EQ(admin_.asked.size(), asked);
  for (const char* name : {"%", "%4", "%zz", "%4z"}) {
    EXPECT_THAT(Get(std::string("runs/") + name, 400).at("error").get<std::string>(), HasSubstr("begins no code"));
  }
  Get("runs/a%2Db");
  EXPECT_EQ(LastAsked(), "run: \"a-b\"");
}

TEST_F(WebApiTest, RoundsComeInPages) {
  for (uint64_t id = 1; id <= 3; ++id) {
    v1::Round round;
    round.set_id(id);
    admin_.rounds.push_back(round);
  }
  EXPECT_EQ(Get("runs/a/rounds").at("rounds").size(), 3);
  EXPECT_EQ(LastAsked(), "first: 1 last: 1000 run: \"a\"");
  const json page = Get("runs/a/rounds?first=2&last=2");
  ASSERT_EQ(page.at("rounds").size(), 1);
  EXPECT_EQ(page.at("rounds").at(0).at("id"), 2);
  EXPECT_TRUE(page.at("rounds").at(0).at("accuracy").is_null());
  Get("runs/a/rounds?first=5&last=5000");
  EXPECT_EQ(LastAsked(), "first: 5 last: 1004 run: \"a\"");
  Get("runs/a/rounds?first=9223372036854775807");
  EXPECT_EQ(LastAsked(), "first: 9223372036854775807 last: 9223372036854775807 run: \"a\"");
}

TEST_F(WebApiTest, EventsHaveABound) {
  Get("runs/a/events");
  EXPECT_EQ(LastAsked(), "newest: 100 run: \"a\"");
  Get("runs/a/events?newest=7");
  EXPECT_EQ(LastAsked(), "newest: 7 run: \"a\"");
  Get("runs/a/events?newest=4000000000000");
  EXPECT_EQ(LastAsked(), "newest: 1000 run: \"a\"");
}

TEST_F(WebApiTest, EventsArePagedAndFiltered) {
  Get("runs/a/events?newest=7&before=51&kind=client_joined&client=berlin");
  EXPECT_EQ(LastAsked(), "newest: 7 run: \"a\" before: 51 kind: \"client_joined\" client: \"berlin\"");
  Get("runs/a/events?before=0", 400);
  EXPECT_THAT(Get("runs/a/events?kind=%ff", 400).at("error").get<std::string>(), HasSubstr("must be printable"));
}

TEST_F(WebApiTest, ClientsArePagedSortedAndFiltered) {
  Get("runs/a/clients");
  EXPECT_EQ(LastAsked(), "run: \"a\"");
  Get("runs/a/clients?first=51&count=50&sort=up&order=descending&state=set%20aside&name=ber");
  EXPECT_EQ(LastAsked(),
            "run: \"a\" skip: 50 count: 50 sort: \"up\" descending: true state: \"set aside\" name: \"ber\"");
  Get("runs/a/clients?order=ascending&sort=up");
  EXPECT_EQ(LastAsked(), "run: \"a\" sort: \"up\"");
  const int asked = admin_.asked.size();
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"count=1001", "from 1 to 1000"},    {"count=0", "from 1 to 1000"},
      {"first=0", "from 1 to 1000000000"}, {"order=up", "is ascending or descending"},
      {"name=%00", "must be printable"},   {"state=%c3%a4", "must be printable"}};
  for (const auto& [query, reason] : wrong) {
    EXPECT_THAT(Get("runs/a/clients?" + query, 400).at("error").get<std::string>(), HasSubstr(reason)) << query;
  }
  EXPECT_EQ(admin_.asked.size(), asked);
}

TEST_F(WebApiTest, RoundsAsCsv) {
  v1::Round round;
  round.set_id(1);
  round.set_accuracy(0.25);
  admin_.rounds = {round};
  const httplib::Result reply = httplib::Client(server_->url()).Get("/api/v1/runs/a/rounds.csv?first=1&last=9");
  EXPECT_EQ(reply->get_header_value("Content-Type"), "text/csv");
  EXPECT_EQ(reply->body, CsvHeader(*v1::Round::descriptor()) + CsvRow(round));
  // The JSON of the same question is another answer.
  EXPECT_EQ(Get("runs/a/rounds?first=1&last=9").at("rounds").size(), 1);
}

TEST_F(WebApiTest, NumbersThatAreNone) {
  for (const char* query : {"first=x", "first=0", "first=-1", "first=", "last=1.5", "first=9223372036854775808"}) {
    EXPECT_THAT(Get(std::string("runs/a/rounds?") + query, 400).at("error").get<std::string>(),
                HasSubstr("must be a whole number from 1 on"))
        << query;
  }
  EXPECT_TRUE(admin_.asked.empty());
}

TEST_F(WebApiTest, ViewersShareAnswersOfTheSameQuestion) {
  Get("runs/a/rounds?first=1&last=9");
  Get("runs/a/rounds?last=9&first=1&x=1");
  EXPECT_EQ(admin_.asked.size(), 1);
  Get("runs/b/rounds?first=1&last=9");
  EXPECT_EQ(admin_.asked.size(), 2);
  clock_.Advance(1);
  Get("runs/a/rounds?first=1&last=9");
  EXPECT_EQ(admin_.asked.size(), 3);
}

}  // namespace
}  // namespace terse
