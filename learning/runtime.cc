#include "learning/runtime.h"

#include <ATen/Parallel.h>
#include <malloc.h>

namespace terse {

void ConfigureThreads(int n) { at::set_num_threads(n); }

void ConfigureMalloc() {
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

}  // namespace terse
