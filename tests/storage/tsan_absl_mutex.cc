// For ThreadSanitizer builds only. The packaged Abseil is not instrumented, so the sanitizer does not see that
// absl::Mutex orders anything and reports every guarded access. The linker sends our calls of Lock and Unlock through
// here (--wrap).
#include <sanitizer/tsan_interface.h>

extern "C" {
void __real__ZN4absl7debian35Mutex4LockEv(void* mutex);
void __real__ZN4absl7debian35Mutex6UnlockEv(void* mutex);

void __wrap__ZN4absl7debian35Mutex4LockEv(void* mutex) {
  __real__ZN4absl7debian35Mutex4LockEv(mutex);
  __tsan_acquire(mutex);
}

void __wrap__ZN4absl7debian35Mutex6UnlockEv(void* mutex) {
  __tsan_release(mutex);
  __real__ZN4absl7debian35Mutex6UnlockEv(mutex);
}
}
