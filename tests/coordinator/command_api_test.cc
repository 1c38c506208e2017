// An operator's commands over HTTP, with a desk that notes what it was asked.
#include "coordinator/web/command_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/web/dashboard.h"
#include "core/log/recent_lines.h"
#include "proto/export_formats.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

class NotingDesk : public OperatorDesk {
 public:
  grpc::Status PauseFor(const AuditedCaller& caller, const v1::PauseRequest& request, v1::StateReply* reply) override {
    Note(caller, "pause", request);
    reply->set_state("paused");
    return answer;
  }
  grpc::Status ResumeFor(const AuditedCaller& caller, const v1::ResumeRequest& request,
                         v1::StateReply* reply) override {
    Note(caller, "resume", request);
    reply->set_state("active");
    return answer;
  }
  grpc::Status AbortRoundFor(const AuditedCaller& caller, const v1::AbortRoundRequest& request,
                             v1::AbortRoundReply* reply) override {
    Note(caller, "abort", request);
    reply->set_round(7);
    return answer;
  }
  grpc::Status SetAsideFor(const AuditedCaller& caller, const v1::SetAsideRequest& request,
                           v1::SetAsideReply* reply) override {
    Note(caller, "aside", request);
    reply->set_until_us(5);
    return answer;
  }
  grpc::Status ExportFor(const AuditedCaller& caller, const v1::ExportRequest& request,
                         absl::FunctionRef<bool(const v1::ExportChunk&)> take) override {
    Note(caller, "export", request);
    for (const std::string& piece : pieces) {
      v1::ExportChunk chunk;
      chunk.set_total(5);
      chunk.set_data(piece);
      EXPECT_TRUE(take(chunk));
    }
    return answer;
  }

  std::string last;
  std::vector<std::string> pieces = {"abc", "de"};
  grpc::Status answer;

 private:
  void Note(const AuditedCaller& caller, const std::string& what, const google::protobuf::Message& request) {
    last = absl::StrCat(caller.who, " ", what, " ", request.ShortDebugString());
  }
};

class CommandApiTest : public testing::Test {
 protected:
  void SetUp() override {
    HttpOptions options;
    options.address = "127.0.0.1:0";
    const auto visitor = [](const HttpCaller& caller) {
      return caller.token == "key" ? Visitor{{"token", "", caller.host}, true, ""}
                                   : Visitor{{"cleartext", "", caller.host}, false, "show it"};
    };
    absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(options, CommandRoutes(&desk_, visitor));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  httplib::Result Post(const std::string& path, const std::string& body) {
    return httplib::Client(server_->url())
        .Post("/api/v1/" + path, {{kRequestHeader, "1"}, {kTokenHeader, "key"}}, body, "application/json");
  }
  std::string Error(const std::string& path, const std::string& body, int code = 400) {
    const httplib::Result reply = Post(path, body);
    EXPECT_EQ(reply->status, code) << path << " " << body << ": " << reply->body;
    return json::parse(reply->body).at("error");
  }
  json Get(const std::string& path) {
    return json::parse(httplib::Client(server_->url()).Get("/api/v1/" + path)->body);
  }

  NotingDesk desk_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(CommandApiTest, EachCommandIsTheOneOfTheAdminService) {
  EXPECT_EQ(json::parse(Post("runs/a/pause", R"({"reason": "lunch"})")->body).at("state"), "paused");
  EXPECT_EQ(desk_.last, "token pause run: \"a\" reason: \"lunch\"");
  EXPECT_EQ(Post("runs/a%2Db/resume", "{}")->status, 200);
  EXPECT_EQ(desk_.last, "token resume run: \"a-b\"");
  EXPECT_EQ(json::parse(Post("runs/a/abort-round", "")->body).at("round"), 7);
  EXPECT_EQ(desk_.last, "token abort run: \"a\"");
  EXPECT_EQ(
      json::parse(Post("runs/a/set-aside", R"({"client": "c", "seconds": 1.5, "reason": "r"})")->body).at("until_us"),
      5);
  EXPECT_EQ(desk_.last, "token aside run: \"a\" client: \"c\" seconds: 1.5 reason: \"r\"");
}

TEST_F(CommandApiTest, TheModelComesAsAFile) {
  const httplib::Result reply = Post("runs/a%20b/export", R"({"format": "npz"})");
  EXPECT_EQ(reply->body, "abcde");
  EXPECT_EQ(reply->get_header_value("Content-Type"), "application/octet-stream");
  EXPECT_EQ(reply->get_header_value("Content-Disposition"), "attachment; filename=\"a_b.npz\"");
  EXPECT_EQ(desk_.last, "token export format: FORMAT_NPZ run: \"a b\"");
  EXPECT_THAT(Error("runs/a/export", R"({"format": "onnx"})"),
              HasSubstr("the formats are torchscript, safetensors, npz, vocabulary"));
  desk_.pieces.clear();
  EXPECT_THAT(Error("runs/a/export", R"({"format": "vocabulary"})", 404), HasSubstr("reads no text"));
}

// The page names the formats itself, because the choice of one is on it before it has asked for anything.
TEST_F(CommandApiTest, ThePageOffersEveryFormatOfAModel) {
  std::vector<std::string> offered, known;
  for (const WebAsset& asset : WebAssets()) {
    const std::string text(asset.bytes);
    std::smatch choice;
    if (!std::regex_search(text, choice, std::regex("<select id=\"model-format\">([^]*?)</select>"))) continue;
    const std::string options = choice[1];
    const std::regex option("<option value=\"([^\"]*)\">");
    for (std::sregex_iterator it(options.begin(), options.end(), option); it != std::sregex_iterator(); ++it) {
      offered.push_back((*it)[1]);
    }
  }
  for (const ExportFormatRow& row : kExportFormats) known.emplace_back(row.name);
  EXPECT_THAT(offered, UnorderedElementsAreArray(known));
  EXPECT_EQ(known.size(), v1::ExportRequest::Format_descriptor()->value_count() - 1) << "all but FORMAT_UNSPECIFIED";
}

TEST_F(CommandApiTest, BodiesThatAreNone) {
  for (const char* body : {"[]", "7", "{", "nonsense", "\"x\""}) {
    EXPECT_EQ(Error("runs/a/pause", body), "the body is no JSON object") << body;
  }
  EXPECT_EQ(Error("runs/a/pause", R"({"reasons": "x"})"), "this command has no field 'reasons'; it has reason");
  EXPECT_EQ(Error("runs/a/resume", R"({"reason": "x"})"), "this command has no field 'reason'; it has none");
  EXPECT_EQ(Error("runs/a/pause", R"({"reason": 7})"), "'reason' must be a text");
  EXPECT_EQ(Error("runs/a/set-aside", R"({"client": "c"})"), "'seconds' must be given, as a number");
  EXPECT_EQ(Error("runs/%ff/pause", "{}", 404), "no run has such a name");
  EXPECT_EQ(Error("runs/a/pause", "{\"reason\": \"\xff\"}"), "the body is no JSON object");
  EXPECT_EQ(desk_.last, "");
}

TEST_F(CommandApiTest, WhatTheServiceRefusesIsSaid) {
  desk_.answer = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the run is over");
  EXPECT_EQ(Error("runs/a/pause", "{}", 409), "the run is over");
  desk_.answer = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many");
  EXPECT_EQ(Error("runs/a/export", R"({"format": "npz"})", 429), "too many");
}

TEST_F(CommandApiTest, WhoAsks) {
  EXPECT_EQ(Get("me"), json({{"who", "cleartext"}, {"operator", false}, {"hint", "show it"}}));
}

TEST_F(CommandApiTest, TheNewestLinesOfTheLog) {
  KeepRecentLines(3);
  AddRecentLine(LogLevel::kInfo, "server", {}, "of the process");
  AddRecentLine(LogLevel::kWarn, "run", {"a", 2, "berlin"}, "of a\nclient");
  AddRecentLine(LogLevel::kInfo, "run", {"b"}, "of another run");
  EXPECT_EQ(Get("log").at("lines").size(), 3);
  const json lines = Get("log?run=a&newest=2").at("lines");
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0].at("message"), "of the process");
  EXPECT_EQ(lines[1].at("message"), "of a\\nclient");
  EXPECT_EQ(lines[1].at("client"), "berlin");
  EXPECT_EQ(lines[1].at("level"), "warn");
  EXPECT_THAT(Get("log?newest=1001").at("error").get<std::string>(), HasSubstr("from 1 to 1000"));
  KeepRecentLines(0);
}

}  // namespace
}  // namespace terse
