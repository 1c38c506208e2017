// For ThreadSanitizer builds only. The packaged Abseil is not instrumented, so the sanitizer does not see what its
// mutexes and notifications order and would report every guarded access. The linker sends our calls through here
// (--wrap). Waiting becomes polling: inside Abseil a condition would be evaluated under a lock that the sanitizer does
// not see.
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

extern "C" {

void __real__ZN4absl7debian35Mutex4LockEv(void* mutex);
void __real__ZN4absl7debian35Mutex6UnlockEv(void* mutex);
void __real__ZN4absl7debian312Notification6NotifyEv(void* notification);
void __real__ZNK4absl7debian312Notification19WaitForNotificationEv(const void* notification);

void __wrap__ZN4absl7debian35Mutex4LockEv(void* mutex) {
  __real__ZN4absl7debian35Mutex4LockEv(mutex);
  __tsan_acquire(mutex);
}

void __wrap__ZN4absl7debian35Mutex6UnlockEv(void* mutex) {
  __tsan_release(mutex);
  __real__ZN4absl7debian35Mutex6UnlockEv(mutex);
}

bool __wrap__ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE(absl::Mutex* mutex,
                                                                                     const absl::Condition& condition,
                                                                                     absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition.Eval()) {
    if (absl::Now() >= deadline) return false;
    __wrap__ZN4absl7debian35Mutex6UnlockEv(mutex);
    usleep(100);
    __wrap__ZN4absl7debian35Mutex4LockEv(mutex);
  }
  return true;
}

void __wrap__ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(absl::Mutex* mutex, const absl::Condition& condition) {
  __wrap__ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE(mutex, condition,
                                                                                  absl::InfiniteDuration());
}

void __wrap__ZN4absl7debian312Notification6NotifyEv(void* notification) {
  __tsan_release(notification);
  __real__ZN4absl7debian312Notification6NotifyEv(notification);
}

void __wrap__ZNK4absl7debian312Notification19WaitForNotificationEv(const void* notification) {
  __real__ZNK4absl7debian312Notification19WaitForNotificationEv(notification);
  __tsan_acquire(const_cast<void*>(notification));
}
}
