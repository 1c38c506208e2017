#include "learning/runtime.h"

#include <ATen/Parallel.h>
#include <malloc.h>

namespace terse {

void ConfigureThreads(int n) { at::set_num_threads(n); }

void ConfigureMalloc() {
  constexpr int kKeep = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kKeep);
  mallopt(M_TRIM_THRESHOLD, kKeep);
}

}  // namespace terse
