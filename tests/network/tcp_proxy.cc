#include "tests/network/tcp_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace terse {
namespace {

// A flow that holds so much stops reading until some of it has left.
constexpr size_t kMostHeldBytes = size_t{8} << 20;
// The interval at which a reset looks whether the bytes before it have left the kernel.
constexpr absl::Duration kDrainCheck = absl::Milliseconds(1);
constexpr absl::Duration kMostWait = absl::Seconds(60);

// The proxy is a test's: without its sockets there is no test.
int Must(int result, const char* what) {
  if (result >= 0) return result;
  perror(what);
  abort();
}

sockaddr_in ParseAddress(const std::string& address) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(address, ':');
  int port = 0;
  sockaddr_in parsed = {};
  parsed.sin_family = AF_INET;
  const bool whole =
      absl::SimpleAtoi(parts.second, &port) && inet_pton(AF_INET, parts.first.c_str(), &parsed.sin_addr) == 1;
  Must(whole ? 0 : -1, address.c_str());
  parsed.sin_port = htons(port);
  return parsed;
}

void CloseFd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void ResetFd(int* fd) {
  const linger now = {1, 0};
  if (*fd >= 0) setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  CloseFd(fd);
}

void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool HasLeft(int fd) {
  int unsent = 0;
  return fd < 0 || ioctl(fd, SIOCOUTQ, &unsent) != 0 || unsent == 0;
}

}  // namespace

// One direction. `from` and `to` are the link's descriptors; -1 once closed.
struct TcpProxy::Flow {
  enum class End { kNone, kFin, kReset };
  struct Piece {
    absl::Time due;
    std::string bytes;
  };

  bool loses() const { return delivered >= script->lose_after; }
  // Nothing more will be done for this direction.
  bool finished() const { return end != End::kNone && (end_sent || loses()); }
  bool wants_read() const { return *from >= 0 && end == End::kNone && script->read && held < kMostHeldBytes; }

  void Read(absl::Time now);
  // The next moment at which something is due.
  absl::Time Write(absl::Time now, bool record);
  int64_t Allowance(absl::Time now, size_t ready, absl::Time* next);

  int* from = nullptr;
  int* to = nullptr;
  FlowScript* script = nullptr;
  std::deque<Piece> queue;
  size_t held = 0;
  int64_t delivered = 0;
  bool readable = false;
  bool blocked = false;  // the receiver takes no more for now
  bool spoke = false;    // bytes came since the last look
  End end = End::kNone;  // how the sender ended
  absl::Time end_due;
  bool end_sent = false;
  double credit = 0;  // bytes that the bandwidth allows
  absl::Time credit_at = absl::InfinitePast();
  std::string recorded;
};

struct TcpProxy::Link {
  int client = -1;
  int coordinator = -1;
  bool connected = false;
  bool reset_wanted = false;
  absl::Time connect_at;
  absl::Time moved_at;
  LinkScript script;
  Flow up, down;
  bool was_reset = false;
  bool forgotten = false;

  bool open() const { return client >= 0 || coordinator >= 0; }
  // One turn of one direction; the next moment at which something is due.
  absl::Time Carry(Flow* flow, absl::Time now, bool record);
  void Reset() {
    was_reset = true;
    ResetFd(&client);
    ResetFd(&coordinator);
  }
};

// An event that the loop waits for: `flag` becomes `value` when `fd` has one of the events.
struct TcpProxy::Watched {
  int fd;
  short events;  // NOLINT: pollfd's type
  bool* flag;
  bool value;
};

void TcpProxy::Flow::Read(absl::Time now) {
  if (!readable || !wants_read()) return;
  readable = false;
  std::string bytes(std::max<int64_t>(1, script->chunk_bytes), '\0');
  const ssize_t count = recv(*from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    end = count == 0 ? End::kFin : End::kReset;
    end_due = now + script->latency;
    return;
  }
  spoke = true;
  bytes.resize(count);
  held += bytes.size();
  queue.push_back({now + script->latency, std::move(bytes)});
}

// Bytes that may leave now, of `ready` that are due. A token bucket that holds one chunk.
int64_t TcpProxy::Flow::Allowance(absl::Time now, size_t ready, absl::Time* next) {
  int64_t most = std::min<int64_t>(ready, std::max<int64_t>(1, script->chunk_bytes));
  most = std::min(most, std::min(script->reset_after, script->lose_after) - delivered);
  const int64_t rate = script->bytes_per_second;
  if (rate == kNeverBytes || most <= 0) return most;
  if (rate == 0) return 0;
  if (credit_at == absl::InfinitePast()) credit_at = now;
  credit += absl::ToDoubleSeconds(now - credit_at) * rate;
  credit = std::min<double>(credit, std::max<int64_t>(1, script->chunk_bytes));
  credit_at = now;
  if (credit < most) *next = std::min(*next, now + absl::Seconds((most - credit) / rate));
  return std::min<int64_t>(most, credit);
}

absl::Time TcpProxy::Flow::Write(absl::Time now, bool record) {
  absl::Time next = absl::InfiniteFuture();
  while (!blocked && !queue.empty() && !loses()) {
    Piece& piece = queue.front();
    if (piece.due > now) return std::min(next, piece.due);
    const int64_t most = Allowance(now, piece.bytes.size(), &next);
    if (most <= 0) return next;
    const ssize_t sent = *to < 0 ? -1 : send(*to, piece.bytes.data(), most, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && *to >= 0 && (errno == EAGAIN || errno == EINTR)) {
      blocked = true;
      return next;
    }
    if (sent < 0) break;  // the receiver is gone; its own direction tells the sender
    if (record) recorded.append(piece.bytes, 0, sent);
    delivered += sent;
    if (script->bytes_per_second != kNeverBytes) credit -= sent;
    held -= sent;
    piece.bytes.erase(0, sent);
    if (piece.bytes.empty()) queue.pop_front();
  }
  if (blocked) return next;
  queue.clear();
  held = 0;
  if (end == End::kNone || end_sent || loses()) return next;
  if (end_due > now) return std::min(next, end_due);
  if (end == End::kFin && *to >= 0) shutdown(*to, SHUT_WR);
  end_sent = true;
  return next;
}

TcpProxy::TcpProxy(const std::string& target, Plan plan, bool record)
    : target_(ParseAddress(target)), record_(record), plan_(std::move(plan)) {
  listener_ = Must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
  sockaddr_in here = ParseAddress("127.0.0.1:0");
  socklen_t size = sizeof(here);
  Must(bind(listener_, reinterpret_cast<sockaddr*>(&here), size), "bind");
  Must(listen(listener_, 1024), "listen");
  Must(getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size), "getsockname");
  port_ = ntohs(here.sin_port);
  wake_ = Must(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  thread_ = std::thread([this] { Loop(); });
}

TcpProxy::~TcpProxy() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  Wake();
  thread_.join();
  for (const auto& link : links_) link->Reset();
  CloseFd(&listener_);
  CloseFd(&wake_);
}

std::string TcpProxy::address() const { return absl::StrCat("127.0.0.1:", port_); }

void TcpProxy::Wake() {
  const uint64_t one = 1;
  Must(write(wake_, &one, sizeof(one)), "eventfd");
}

void TcpProxy::SetPlan(Plan plan) {
  absl::MutexLock lock(&mutex_);
  plan_ = std::move(plan);
}

void TcpProxy::ForEachOpen(const std::function<void(int index, LinkScript* script)>& change) {
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < links_.size(); ++i) {
      if (links_[i]->open()) change(static_cast<int>(i), &links_[i]->script);
    }
  }
  Wake();
}

void TcpProxy::ResetAll() {
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& link : links_) link->reset_wanted = true;
  }
  Wake();
}

void TcpProxy::SetAccepting(bool accepting) {
  {
    absl::MutexLock lock(&mutex_);
    accepting_ = accepting;
  }
  Wake();
}

bool TcpProxy::SomebodyKnocks() const {
  pollfd waiting = {listener_, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

std::vector<LinkCount> TcpProxy::Counts() const {
  absl::MutexLock lock(&mutex_);
  std::vector<LinkCount> counts;
  for (const auto& link : links_) {
    counts.push_back({link->up.delivered, link->down.delivered, link->was_reset, link->forgotten, link->open()});
  }
  return counts;
}

LinkCount TcpProxy::Total() const {
  LinkCount total;
  for (const LinkCount& count : Counts()) {
    total.up += count.up;
    total.down += count.down;
  }
  return total;
}

std::string TcpProxy::Delivered(int index, bool up) const {
  absl::MutexLock lock(&mutex_);
  if (index >= static_cast<int>(links_.size())) return "";
  return up ? links_[index]->up.recorded : links_[index]->down.recorded;
}

void TcpProxy::Accept() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  SendAtOnce(fd);
  auto link = std::make_unique<Link>();
  link->client = fd;
  link->script = plan_ ? plan_(static_cast<int>(links_.size())) : LinkScript();
  link->moved_at = absl::Now();
  link->connect_at = link->moved_at + link->script.up.latency;
  link->up.from = link->down.to = &link->client;
  link->up.to = link->down.from = &link->coordinator;
  link->up.script = &link->script.up;
  link->down.script = &link->script.down;
  links_.push_back(std::move(link));
}

void TcpProxy::Connect(Link* link) {
  link->connected = true;
  link->coordinator = Must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  // On loopback a connection is made or refused at once.
  if (connect(link->coordinator, reinterpret_cast<const sockaddr*>(&target_), sizeof(target_)) != 0) {
    ResetFd(&link->client);
    CloseFd(&link->coordinator);
    return;
  }
  SendAtOnce(link->coordinator);
}

absl::Time TcpProxy::Link::Carry(Flow* flow, absl::Time now, bool record) {
  flow->Read(now);
  if (std::exchange(flow->spoke, false)) {
    if (forgotten) return ResetFd(flow->from), absl::InfiniteFuture();
    moved_at = now;
  }
  // An end that nobody carries any more is known to the one who made it only.
  if (forgotten && flow->end != Flow::End::kNone) CloseFd(flow->from);
  if (forgotten) return absl::InfiniteFuture();
  absl::Time next = flow->Write(now, record);
  if (flow->delivered >= flow->script->reset_after) {
    reset_wanted = HasLeft(*flow->to);
    next = std::min(next, now + kDrainCheck);
  }
  reset_wanted |= flow->end == Flow::End::kReset && flow->end_sent;
  return next;
}

absl::Time TcpProxy::Turn(Link* link, absl::Time now) {
  if (!link->open()) return absl::InfiniteFuture();
  if (!link->connected && now < link->connect_at) return link->connect_at;
  if (!link->connected) Connect(link);
  absl::Time next = link->moved_at + link->script.forget_after;
  link->forgotten |= next <= now;
  for (Flow* flow : {&link->up, &link->down}) next = std::min(next, link->Carry(flow, now, record_));
  if (link->reset_wanted) link->Reset();
  if (!link->forgotten && link->up.finished() && link->down.finished()) {
    CloseFd(&link->client);
    CloseFd(&link->coordinator);
  }
  return link->forgotten ? absl::InfiniteFuture() : next;
}

void TcpProxy::Watch(Link* link, std::vector<Watched>* watched) {
  if (!link->connected) return;
  for (Flow* flow : {&link->up, &link->down}) {
    if (flow->wants_read()) watched->push_back({*flow->from, POLLIN, &flow->readable, true});
    if (flow->blocked && *flow->to >= 0) watched->push_back({*flow->to, POLLOUT, &flow->blocked, false});
  }
}

void TcpProxy::Loop() {
  std::vector<Watched> watched;
  std::vector<pollfd> fds;
  while (true) {
    absl::Time next = absl::InfiniteFuture();
    watched.clear();
    {
      absl::MutexLock lock(&mutex_);
      if (ending_) return;
      fds = {{wake_, POLLIN, 0}, {accepting_ ? listener_ : -1, POLLIN, 0}};
      for (const auto& link : links_) {
        next = std::min(next, Turn(link.get(), absl::Now()));
        Watch(link.get(), &watched);
      }
    }
    for (const Watched& one : watched) fds.push_back({one.fd, one.events, 0});
    const absl::Duration wait = std::min(std::max(absl::ZeroDuration(), next - absl::Now()), kMostWait);
    poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
    uint64_t ignored = 0;
    if (fds[0].revents != 0) Must(read(wake_, &ignored, sizeof(ignored)), "eventfd");
    absl::MutexLock lock(&mutex_);
    if (fds[1].revents != 0 && accepting_) Accept();
    for (size_t i = 0; i < watched.size(); ++i) {
      if (fds[i + 2].revents != 0) *watched[i].flag = watched[i].value;
    }
  }
}

}  // namespace terse
