#include "web/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "coordinator/web/dashboard.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

HttpReply Text(const std::string& text) { return {"text/plain", PackText(text)}; }

std::vector<HttpRoute> Routes() {
  return {{"/hello", "", [](const HttpRequest&) { return Text("hello"); }},
          {"/runs/*/x", "",
           [](const HttpRequest& request) {
             const auto found = request.query.find("q");
             return Text(request.captures[0] + "|" + (found == request.query.end() ? "" : found->second));
           }},
          {"/bad", "",
           [](const HttpRequest&) -> absl::StatusOr<HttpReply> { return absl::InvalidArgumentError("\"bad\"\xff"); }},
          {"/none", "", [](const HttpRequest&) -> absl::StatusOr<HttpReply> { return absl::NotFoundError("none"); }},
          {"/down", "",
           [](const HttpRequest&) -> absl::StatusOr<HttpReply> { return absl::FailedPreconditionError("down"); }},
          {"/lost", "", [](const HttpRequest&) -> absl::StatusOr<HttpReply> { return absl::DataLossError("lost"); }}};
}

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override { Start(Routes()); }

  void Start(std::vector<HttpRoute> routes) {
    absl::StatusOr<std::unique_ptr<HttpServer>> server =
        HttpServer::Start({"127.0.0.1:0", false, nullptr, nullptr}, std::move(routes));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  httplib::Result Get(const std::string& path, const httplib::Headers& headers = {}) {
    return httplib::Client(server_->url()).Get(path, headers);
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersItsRoutes) {
  ASSERT_THAT(server_->url(), StartsWith("http://127.0.0.1:"));
  const httplib::Result reply = Get("/hello");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "hello");
  EXPECT_EQ(reply->get_header_value("Content-Type"), "text/plain");
  EXPECT_EQ(Get("/runs/a%20b/x?q=c%26d&q=e")->body, "a b|e");
}

TEST_F(HttpServerTest, LetsBrowsersDoNothingBesides) {
  const httplib::Result reply = Get("/hello");
  EXPECT_THAT(reply->get_header_value("Content-Security-Policy"), StartsWith("default-src 'none'; script-src 'self'"));
  EXPECT_THAT(reply->get_header_value("Content-Security-Policy"), HasSubstr("frame-ancestors 'none'"));
  EXPECT_EQ(reply->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(reply->get_header_value("Cache-Control"), "no-store");
  EXPECT_FALSE(reply->has_header("Access-Control-Allow-Origin"));
}

TEST_F(HttpServerTest, StatusesBecomeCodes) {
  const std::vector<std::pair<std::string, int>> expected = {
      {"/bad", 400}, {"/none", 404}, {"/down", 503}, {"/lost", 500}, {"/elsewhere", 404}};
  for (const auto& [path, code] : expected) {
    const httplib::Result reply = Get(path);
    EXPECT_EQ(reply->status, code) << path;
    EXPECT_FALSE(nlohmann::json::parse(reply->body).at("error").get<std::string>().empty()) << path;
  }
  EXPECT_EQ(nlohmann::json::parse(Get("/bad")->body).at("error"), "\"bad\"\xEF\xBF\xBD");
  EXPECT_EQ(nlohmann::json::parse(Get("/elsewhere")->body).at("error"), "there is nothing at /elsewhere");
}

TEST_F(HttpServerTest, OnlyLooks) {
  httplib::Client client(server_->url());
  EXPECT_EQ(client.Post("/hello", "x", "text/plain")->status, 405);
  EXPECT_EQ(client.Delete("/hello")->status, 405);
  EXPECT_EQ(client.Options("/hello")->get_header_value("Allow"), "GET, HEAD");
  const httplib::Result head = client.Head("/hello");
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->get_header_value("Content-Length"), "5");
}

// DNS rebinding: a page of evil.example, whose name now means 127.0.0.1, asks through the browser.
TEST_F(HttpServerTest, AnswersOnlyUnderNamesOfThisMachine) {
  for (const char* host : {"localhost", "localhost:1", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:7780"}) {
    EXPECT_EQ(Get("/hello", {{"Host", host}})->status, 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:7780", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "",
                           "unix", "unix:80", "unix:7780", ":", "]", "[::1"}) {
    const httplib::Result reply = Get("/hello", {{"Host", host}});
    EXPECT_EQ(reply->status, 403) << host;
    EXPECT_THAT(reply->body, HasSubstr("is no name of this machine's own; use http://127.0.0.1:")) << host;
  }
}

TEST_F(HttpServerTest, PagesOfOtherSitesMayLinkAndNotAsk) {
  EXPECT_EQ(Get("/hello", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}})->status, 403);
  EXPECT_EQ(Get("/hello", {{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "cors"}})->status, 403);
  EXPECT_EQ(Get("/hello", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}})->status, 200);
  EXPECT_EQ(Get("/hello", {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}})->status, 200);
}

TEST_F(HttpServerTest, TextsArePackedForThoseWhoTakeIt) {
  const std::string text(5000, 'x');
  Start({{"/text", "", [&](const HttpRequest&) { return Text(text); }}});
  const httplib::Result packed = Get("/text", {{"Accept-Encoding", "br, gzip"}});
  EXPECT_EQ(packed->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(packed->body, text);
  const httplib::Result plain = Get("/text", {{"Accept-Encoding", "br"}});
  EXPECT_FALSE(plain->has_header("Content-Encoding"));
  EXPECT_EQ(plain->body, text);
  // No parts, and so no sum of parts that is larger than the whole.
  EXPECT_EQ(Get("/text", {{"Range", "bytes=0-,0-,0-"}, {"Accept-Encoding", ""}})->body, text);
}

// A connection without a library, which says what a test wants.
class RawConnection {
 public:
  // From the loopback address 127.0.0.`own`.
  explicit RawConnection(const std::string& url, uint32_t own = 1) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | own);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    const timeval patience = {20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawConnection() { close(fd_); }

  // Whether the other end still listens.
  bool Say(const std::string& bytes) { return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0; }
  // Returns what comes until `end`, or until the connection ends.
  std::string Hear(const std::string& end = "") {
    std::string heard;
    char block[4096];
    while (end.empty() || heard.find(end) == std::string::npos) {
      const ssize_t got = recv(fd_, block, sizeof(block), 0);
      if (got <= 0) break;
      heard.append(block, static_cast<size_t>(got));
    }
    return heard;
  }

 private:
  const int fd_;
};

TEST_F(HttpServerTest, LongHeadsAreRefused) {
  EXPECT_EQ(Get("/runs/" + std::string(7000, 'a') + "/x")->status, 200);
  RawConnection lines(server_->url());
  lines.Say("GET /hello HTTP/1.1\r\nHost: localhost\r\n");
  for (int i = 0; i < 10'000 && lines.Say("a:b\r\n"); ++i) continue;
  EXPECT_THAT(lines.Hear(), testing::AnyOf("", StartsWith("HTTP/1.1 431")));
  RawConnection line(server_->url());
  line.Say("GET /" + std::string(kHttpHeadBytes + 1, 'a') + " HTTP/1.1\r\n\r\n");
  EXPECT_THAT(line.Hear(), testing::AnyOf("", StartsWith("HTTP/1.1 431")));
  EXPECT_EQ(Get("/hello")->status, 200);
}

TEST_F(HttpServerTest, GarbageEndsItsOwnConnectionOnly) {
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15), std::string("x\r\n\r\n"),
        std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"), std::string("GET /%zz HTTP/1.1\r\n\r\n"),
        std::string("GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n")}) {
    RawConnection connection(server_->url());
    connection.Say(bytes);
    EXPECT_THAT(connection.Hear("\r\n\r\n"), testing::AnyOf(StartsWith("HTTP/1.1 400"), StartsWith("HTTP/1.1 403")))
        << bytes;
    EXPECT_EQ(Get("/hello")->status, 200);
  }
}

// A body is not read, so the bytes that follow it could be taken for another request.
TEST_F(HttpServerTest, ABodyEndsItsConnection) {
  for (const char* method : {"POST", "GET"}) {
    RawConnection connection(server_->url());
    connection.Say(std::string(method) + " /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    connection.Say("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string heard = connection.Hear();
    EXPECT_THAT(heard, HasSubstr("Connection: close")) << method;
    EXPECT_EQ(heard.find("HTTP/1.1", 1), std::string::npos) << heard;
  }
}

// A peer whose body is refused has time to send it and to read the answer: the connection is not reset.
TEST_F(HttpServerTest, ARefusedBodyDoesNotCostTheAnswer) {
  RawConnection connection(server_->url());
  connection.Say("POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(connection.Say(std::string(100'000, 'x'))) << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_THAT(connection.Hear(), StartsWith("HTTP/1.1 405"));
  RawConnection endless(server_->url());
  endless.Say("POST /hello HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  size_t said = 0;
  while (said < (64u << 20) && endless.Say(std::string(10'000, 'x'))) said += 10'000;
  EXPECT_LT(said, 64u << 20) << "only so much is dropped";
}

TEST_F(HttpServerTest, ManyViewersStayConnectedAndAllAreAnswered) {
  std::vector<std::unique_ptr<httplib::Client>> viewers;
  for (int i = 0; i < 100; ++i) {
    viewers.push_back(std::make_unique<httplib::Client>(server_->url()));
    viewers.back()->set_keep_alive(true);
  }
  for (int round = 0; round < 3; ++round) {
    for (const auto& viewer : viewers) {
      const httplib::Result reply = viewer->Get("/hello");
      ASSERT_TRUE(reply);
      EXPECT_EQ(reply->body, "hello");
    }
  }
}

TEST_F(HttpServerTest, ConnectionsHaveABoundThatOthersLeaveAgain) {
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < kHttpConnections; ++i) {
    idle.push_back(std::make_unique<RawConnection>(server_->url(), 2 + i / kHttpConnectionsOfOne));
    idle.back()->Say("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_THAT(idle.back()->Hear("hello"), HasSubstr("200 OK"));
  }
  EXPECT_FALSE(Get("/hello"));
  idle.clear();
  httplib::Result reply = Get("/hello");
  for (int i = 0; i < 100 && !reply; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    reply = Get("/hello");
  }
  EXPECT_TRUE(reply);
}

TEST_F(HttpServerTest, AnAddressLeavesPlacesForOthers) {
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (int i = 0; i < kHttpConnections; ++i) {
    slow.push_back(std::make_unique<RawConnection>(server_->url(), 2));
    slow.back()->Say("GET /hello HTTP/1.1\r\nX: ");
  }
  EXPECT_EQ(slow.back()->Hear(), "") << "beyond the bound of one address it is closed at once";
  const httplib::Result reply = Get("/hello");
  ASSERT_TRUE(reply) << "another address has a place";
  EXPECT_EQ(reply->body, "hello");
}

TEST_F(HttpServerTest, AFirstRequestHasLessTimeThanAnother) {
  RawConnection silent(server_->url()), drips(server_->url()), knows(server_->url());
  drips.Say("GET /hello HTTP/1.1\r\nX: ");
  knows.Say("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(knows.Hear("hello"), HasSubstr("200 OK"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(silent.Hear(), "");
  EXPECT_EQ(drips.Hear(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kHttpPatienceSeconds / 2));
  knows.Say("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(knows.Hear("hello"), HasSubstr("200 OK"));
}

// Handlers are few, so that looking does not take the machine.
TEST_F(HttpServerTest, FewRequestsAreAnsweredAtATime) {
  absl::Notification go;
  std::atomic<int> inside{0}, most{0}, answered{0};
  Start({{"/slow", "", [&](const HttpRequest&) {
            const int now = ++inside;
            for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
            go.WaitForNotification();
            --inside;
            return Text("done");
          }}});
  std::vector<std::thread> viewers;
  for (int i = 0; i < 20; ++i) {
    viewers.emplace_back([&] {
      const httplib::Result reply = Get("/slow");
      answered += reply && reply->body == "done";
    });
  }
  while (inside < kHttpHandlers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(most, kHttpHandlers);
  go.Notify();
  for (std::thread& viewer : viewers) viewer.join();
  EXPECT_EQ(answered, 20);
}

// Those that drip, those that do not read, and those that only stay.
TEST_F(HttpServerTest, EndsThoughOthersAreConnected) {
  const std::string large(32 << 20, 'x');
  std::vector<HttpRoute> routes = Routes();
  routes.push_back({"/large", "", [&](const HttpRequest&) { return Text(large); }});
  Start(std::move(routes));
  const std::string url = server_->url();
  RawConnection drips(url), does_not_read(url), stays(url);
  drips.Say("GET /hello HTTP/1.1\r\nX: ");
  does_not_read.Say("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  stays.Say("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(stays.Hear("hello"), HasSubstr("200 OK"));
  std::atomic<bool> ended{false};
  std::thread dripping([&] {
    while (!ended && drips.Say("x")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto begin = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  ended = true;
  dripping.join();
  EXPECT_EQ(stays.Hear(), "");
}

TEST_F(HttpServerTest, AddressesThatCannotBeServed) {
  const auto start = [](const std::string& address, bool insecure) {
    return HttpServer::Start({address, insecure, nullptr, nullptr}, {}).status();
  };
  for (const char* address : {"", "7780", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ":7780",
                              "unix:/tmp/x.sock:1", "127.0.0.1:-1"}) {
    EXPECT_EQ(start(address, true).code(), absl::StatusCode::kInvalidArgument) << address;
  }
  EXPECT_THAT(std::string(start("7781", true).message()), StartsWith("--http: '7781' is no address; give HOST:PORT"));
  EXPECT_EQ(start("192.0.2.1:0", true).code(), absl::StatusCode::kUnavailable);
  const std::string taken = server_->url().substr(std::string("http://").size());
  EXPECT_THAT(std::string(start(taken, false).message()),
              HasSubstr("Address already in use; choose another with --http"));
  const absl::Status cleartext = start("127.1:0", false);
  EXPECT_EQ(cleartext.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cleartext.message()), HasSubstr("give --tls DIR"));
  EXPECT_TRUE(start("127.1:0", true).ok());
  EXPECT_TRUE(start("[::1]:0", false).ok());
}

// Whatever a file of the page names is served.
TEST_F(HttpServerTest, ThePageIsWhole) {
  Start(DashboardRoutes());
  const httplib::Result page = Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html");
  EXPECT_THAT(page->body, StartsWith("<!doctype html>"));
  for (const char* path : {"/style.css", "/chart.js", "/main.js", "/charts.js", "/clients.js", "/format.js"}) {
    EXPECT_EQ(Get(path)->status, 200) << path;
    EXPECT_GT(Get(path)->body.size(), 500) << path;
  }
  for (const WebAsset& asset : WebAssets()) {
    const std::string text(asset.bytes);
    const std::regex imported("from \"\\.(/[a-z]+\\.js)\"");
    for (std::sregex_iterator it(text.begin(), text.end(), imported); it != std::sregex_iterator(); ++it) {
      EXPECT_EQ(Get((*it)[1])->status, 200) << asset.path << " imports " << (*it)[1];
    }
  }
  EXPECT_THAT(Get("/chart.js")->body, HasSubstr("Chart.js v3"));
  const httplib::Result packed = Get("/chart.js", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(packed->get_header_value("Content-Encoding"), "gzip");
}

}  // namespace
}  // namespace terse
