#include "learning/runtime.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <malloc.h>
#include <torch/version.h>

#include <algorithm>
#include <thread>

namespace terse {

void ConfigureThreads(int n) {
  at::set_num_threads(n);
  // An OpenBLAS with threads of its own, which a LibTorch may be linked to, is not told by that.
  if (void* symbol = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"); symbol != nullptr) {
    reinterpret_cast<void (*)(int)>(symbol)(n);
  }
}

void ConfigureMalloc(int kept_mib) {
  mallopt(M_MMAP_THRESHOLD, kept_mib << 20);
  mallopt(M_TRIM_THRESHOLD, kept_mib << 24);
  mallopt(M_ARENA_MAX, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

const char* LibTorchVersion() { return TORCH_VERSION; }

}  // namespace terse
