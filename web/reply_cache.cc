#include "web/reply_cache.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/status.h"

namespace terse {

constexpr int64_t ReplyCache::kLeastMicros;
constexpr int64_t ReplyCache::kMostMicros;

void ReplyCache::Forget(const std::string& key) {
  const auto found = replies_.find(key);
  if (found == replies_.end()) return;
  bytes_ -= found->second.body->bytes();
  replies_.erase(found);
}

void ReplyCache::MakeRoom(size_t bytes) {
  while (!replies_.empty() && (replies_.size() >= kMostReplies || bytes_ + bytes > kMostReplyBytes)) {
    const auto oldest = std::min_element(replies_.begin(), replies_.end(), [](const auto& a, const auto& b) {
      return a.second.made_us < b.second.made_us;
    });
    Forget(std::string(oldest->first));
  }
}

ReplyCache::Body ReplyCache::FindOrBegin(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto is_settled = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !making_.contains(key); };
  mutex_.Await(absl::Condition(&is_settled));
  const int64_t now_us = clock_->MonotonicMicros();
  const auto found = replies_.find(key);
  // A clock that was set back makes everything stale.
  const bool is_fresh = found != replies_.end() && now_us >= found->second.made_us &&
                        now_us < found->second.made_us + found->second.fresh_us;
  if (is_fresh) return found->second.body;
  Forget(key);
  making_.insert(key);
  return nullptr;
}

void ReplyCache::End(const std::string& key, const Body& body, int64_t took_us) {
  absl::MutexLock lock(&mutex_);
  making_.erase(key);
  if (body == nullptr || body->bytes() > kMostReplyBytes) return;
  MakeRoom(body->bytes());
  replies_[key] = {body, clock_->MonotonicMicros(), std::clamp(10 * took_us, kLeastMicros, kMostMicros)};
  bytes_ += body->bytes();
}

absl::StatusOr<ReplyCache::Body> ReplyCache::Get(const std::string& key,
                                                 absl::FunctionRef<absl::StatusOr<std::string>()> make) {
  if (Body body = FindOrBegin(key); body != nullptr) return body;
  const int64_t begin_us = clock_->MonotonicMicros();
  Body body;
  absl::Status status;
  {
    // Also when making it throws: others wait for it.
    const auto end = absl::MakeCleanup([&] { End(key, body, clock_->MonotonicMicros() - begin_us); });
    absl::StatusOr<std::string> made = make();
    status = made.status();
    if (made.ok()) body = PackText(*std::move(made));
  }
  if (!status.ok()) return status;
  return body;
}

}  // namespace terse
