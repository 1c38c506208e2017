// A function on a stack of its own that gives control back while it waits: code written for a thread runs under a
// scheduler, one at a time and always in the same order.
#ifndef TERSE_TESTS_TESTING_FIBER_H_
#define TERSE_TESTS_TESTING_FIBER_H_

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace terse {

// Used from one thread. The sanitizers are told of every switch.
class Fiber {
 public:
  Fiber();
  // The function must have returned, or never have begun.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs `body` until it waits or returns. Only while nothing runs.
  void Start(std::function<void()> body);
  // Goes on after a Wait, until the next one or the end.
  void Resume();
  // Called from within the body: goes back to the caller of Start or Resume.
  void Wait();
  bool running() const { return body_ != nullptr; }

 private:
  static void Enter(unsigned high, unsigned low);
  void SwitchIn();
  void SwitchOut(bool for_good);

  const std::unique_ptr<char[]> stack_;
  std::function<void()> body_;
  ucontext_t inside_;
  ucontext_t outside_;
  // The sanitizers' handles of both sides.
  void* inside_tag_ = nullptr;
  void* outside_tag_ = nullptr;
  const void* outside_stack_ = nullptr;
  size_t outside_stack_bytes_ = 0;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_FIBER_H_
