// Commands over HTTP: which requests may be one, and what refuses the others before any route is asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "web/http_router.h"
#include "web/http_server.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

HttpReply Text(const std::string& text) { return {"text/plain", PackText(text)}; }

class HttpCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    HttpOptions options;
    options.address = "127.0.0.1:0";
    options.check_cleartext = [](const HttpCaller& caller, absl::string_view method) -> absl::Status {
      return method == "secret" && caller.token != "key" ? absl::UnauthenticatedError("show the token")
                                                         : absl::OkStatus();
    };
    std::vector<HttpRoute> routes = {
        {"/look", "", [](const HttpRequest&) { return Text("looked"); }},
        {"/do/*", "",
         [](const HttpRequest& request) {
           return Text(absl::StrCat(request.captures[0], "|", request.body, "|", request.caller.host, "|",
                                    request.caller.certificate));
         },
         HttpVerb::kPost},
        {"/guarded", "secret", [](const HttpRequest& request) { return Text(request.caller.token); }, HttpVerb::kPost},
        {"/never", "",
         [](const HttpRequest&) -> absl::StatusOr<HttpReply> { return absl::FailedPreconditionError("not now"); },
         HttpVerb::kPost},
        {"/stuck", "",
         [this](const HttpRequest&) {
           ++stuck_;
           go_on_.WaitForNotification();
           return Text("done");
         },
         HttpVerb::kPost},
        {"/file", "",
         [](const HttpRequest&) {
           HttpReply reply = Text("weights");
           reply.file = "run.npz";
           return reply;
         },
         HttpVerb::kPost}};
    absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(options, std::move(routes));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // As the page sends it, but for `headers` and `type`.
  httplib::Result Post(const std::string& path, const std::string& body, httplib::Headers headers = {},
                       const char* type = "application/json") {
    headers.emplace(kRequestHeader, "1");
    return httplib::Client(server_->url()).Post(path, headers, body, type);
  }
  std::string host() const { return server_->url().substr(sizeof("http://") - 1); }

  std::atomic<int> stuck_{0};  // commands that wait for `go_on_`
  absl::Notification go_on_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpCommandTest, ABodyReachesItsRoute) {
  EXPECT_EQ(Post("/do/this", "{}")->body, "this|{}|127.0.0.1|");
  EXPECT_EQ(Post("/do/this", "")->body, "this||127.0.0.1|");
  const std::string longest(kHttpBodyBytes, 'x');
  EXPECT_EQ(Post("/do/it", longest)->body, absl::StrCat("it|", longest, "|127.0.0.1|"));
  EXPECT_EQ(Post("/file", "{}")->get_header_value("Content-Disposition"), "attachment; filename=\"run.npz\"");
}

TEST_F(HttpCommandTest, AConnectionGoesOnAfterACommand) {
  httplib::Client client(server_->url());
  client.set_keep_alive(true);
  const httplib::Headers headers = {{kRequestHeader, "1"}};
  ASSERT_EQ(client.Post("/do/a", headers, "{}", "application/json")->status, 200);
  const auto socket = client.socket();
  EXPECT_EQ(client.Post("/do/b", headers, "[]", "application/json")->body, "b|[]|127.0.0.1|");
  EXPECT_EQ(client.Get("/look")->body, "looked");
  EXPECT_EQ(client.socket(), socket);
}

TEST_F(HttpCommandTest, LooksAndCommandsHavePathsOfTheirOwn) {
  const httplib::Result get = httplib::Client(server_->url()).Get("/do/this");
  EXPECT_EQ(get->status, 405);
  EXPECT_EQ(get->get_header_value("Allow"), "POST");
  const httplib::Result post = Post("/look", "{}");
  EXPECT_EQ(post->status, 405);
  EXPECT_EQ(post->get_header_value("Allow"), "GET, HEAD");
  EXPECT_EQ(Post("/nowhere", "{}")->status, 404);
  EXPECT_EQ(Post("/never", "{}")->status, 409);
  EXPECT_EQ(httplib::Client(server_->url()).Options("/do/this")->status, 405);
}

TEST_F(HttpCommandTest, PagesOfOtherSitesMayNotCommand) {
  const std::string own = host(), port = own.substr(own.rfind(':'));
  // A form or a script of another site cannot send the header; a browser says where a request comes from besides.
  const httplib::Result bare = httplib::Client(server_->url()).Post("/do/x", "{}", "application/json");
  EXPECT_EQ(bare->status, 403);
  EXPECT_THAT(bare->body, HasSubstr("needs the header X-Terse-Request"));
  const std::vector<std::string> others = {"http://evil.example", "http://localhost" + port, "http://127.0.0.1", "null",
                                           "http://" + own + ".evil.example"};
  for (const std::string& origin : others) {
    EXPECT_EQ(Post("/do/x", "{}", {{"Origin", origin}})->status, 403) << origin;
  }
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_EQ(Post("/do/x", "{}", {{"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", "navigate"}})->status, 403) << site;
  }
  EXPECT_EQ(Post("/do/x", "{}", {{"Host", "evil.example"}, {"Origin", "http://evil.example"}})->status, 403);
  EXPECT_EQ(Post("/do/x", "{}", {{"Origin", "http://" + own}, {"Sec-Fetch-Site", "same-origin"}})->status, 200);
}

TEST_F(HttpCommandTest, BodiesAreSmallJsonWithTheirLength) {
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"}) {
    EXPECT_EQ(Post("/do/x", "{}", {}, type)->status, 415) << type;
  }
  EXPECT_EQ(Post("/do/x", "{}", {}, "application/json; charset=utf-8")->status, 200);
  EXPECT_EQ(Post("/do/x", std::string(kHttpBodyBytes + 1, 'x'))->status, 413);
  const httplib::Headers headers = {{kRequestHeader, "1"}};
  const httplib::Result chunked = httplib::Client(server_->url())
                                      .Post(
                                          "/do/x", headers,
                                          [](size_t, httplib::DataSink& sink) {
                                            sink.write("{}", 2);
                                            sink.done();
                                            return true;
                                          },
                                          "application/json");
  ASSERT_TRUE(chunked);
  EXPECT_EQ(chunked->status, 411);
}

// As to a run whose engine does not answer.
TEST_F(HttpCommandTest, CommandsThatDoNotEndLeaveTheLooks) {
  const auto command = [this](const char* path, time_t seconds) {
    httplib::Client client(server_->url());
    client.set_read_timeout(seconds);
    return client.Post(path, {{kRequestHeader, "1"}}, "{}", "application/json");
  };
  std::vector<std::thread> operators;
  const auto end_commands = [&] {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
    for (std::thread& one : std::exchange(operators, {})) one.join();
  };
  const absl::Cleanup end = end_commands;  // also where an expectation ends the test
  for (int i = 0; i < kHttpCommands; ++i) {
    operators.emplace_back([&] {
      const httplib::Result ended = command("/stuck", 60);
      EXPECT_EQ(ended ? ended->body : "no answer", "done");
    });
  }
  while (stuck_ < kHttpCommands) std::this_thread::yield();
  httplib::Client viewer(server_->url());
  viewer.set_read_timeout(10);
  const httplib::Result look = viewer.Get("/look");
  EXPECT_EQ(look ? look->body : "no answer", "looked");
  const httplib::Result refused = command("/do/this", 10);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_THAT(refused->body, HasSubstr("at most 2 commands are carried out at a time, and so many are under way"));
  const httplib::Result stranger = command("/guarded", 10);
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->status, 401) << "who may not command learns nothing about commands";
  EXPECT_EQ(stuck_, kHttpCommands);
  end_commands();
  EXPECT_EQ(command("/do/this", 10)->status, 200);
}

TEST_F(HttpCommandTest, TheTokenIsAskedFor) {
  EXPECT_EQ(Post("/guarded", "{}")->status, 401);
  EXPECT_EQ(Post("/guarded", "{}", {{kTokenHeader, "kex"}})->status, 401);
  EXPECT_EQ(Post("/guarded", "{}", {{kTokenHeader, "key"}})->body, "key");
}

}  // namespace
}  // namespace terse
