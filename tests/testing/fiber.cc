#include "tests/testing/fiber.h"

#include <cstdint>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace terse {
namespace {

// The sanitizers' frames are several times as large.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = size_t{1} << 20;
#else
constexpr size_t kStackBytes = size_t{1} << 18;
#endif

}  // namespace

Fiber::Fiber() : stack_(new char[kStackBytes]) {}

Fiber::~Fiber() = default;

void Fiber::Enter(unsigned high, unsigned low) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): makecontext passes ints
  auto* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &self->outside_stack_, &self->outside_stack_bytes_);
#endif
  self->body_();
  self->body_ = nullptr;
  self->SwitchOut(/*for_good=*/true);
}

void Fiber::Start(std::function<void()> body) {
  body_ = std::move(body);
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(this);
  // makecontext passes ints.
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
#ifdef __SANITIZE_THREAD__
  inside_tag_ = __tsan_create_fiber(0);
#endif
  SwitchIn();
}

void Fiber::Resume() { SwitchIn(); }

void Fiber::Wait() { SwitchOut(/*for_good=*/false); }

void Fiber::SwitchIn() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&outside_tag_, stack_.get(), kStackBytes);
#endif
#ifdef __SANITIZE_THREAD__
  outside_tag_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inside_tag_, 0);
#endif
  swapcontext(&outside_, &inside_);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(outside_tag_, nullptr, nullptr);
#endif
#ifdef __SANITIZE_THREAD__
  if (!running()) __tsan_destroy_fiber(inside_tag_);
#endif
}

void Fiber::SwitchOut(bool for_good) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(for_good ? nullptr : &inside_tag_, outside_stack_, outside_stack_bytes_);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(outside_tag_, 0);
#endif
  swapcontext(&inside_, &outside_);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(inside_tag_, &outside_stack_, &outside_stack_bytes_);
#endif
}

}  // namespace terse
