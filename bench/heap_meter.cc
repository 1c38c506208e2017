#include "bench/heap_meter.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace terse {
namespace {

std::atomic<int64_t> in_use{0};
std::atomic<int64_t> peak{0};

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = in_use.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  in_use.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

int64_t HeapBytes() { return in_use.load(); }
int64_t HeapPeakBytes() { return peak.load(); }
void ResetHeapPeak() { peak.store(in_use.load()); }

}  // namespace terse

// The array and nothrow forms of the standard library call these.
void* operator new(size_t size) { return terse::Counted(std::malloc(size)); }
void* operator new(size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(alignment), size) != 0) throw std::bad_alloc();
  return terse::Counted(memory);
}
void operator delete(void* memory) noexcept { terse::Free(memory); }
void operator delete(void* memory, size_t) noexcept { terse::Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { terse::Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { terse::Free(memory); }
