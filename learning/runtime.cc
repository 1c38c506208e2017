#include "learning/runtime.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <malloc.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "absl/strings/string_view.h"

namespace terse {
namespace {

constexpr char kCoreTypeVariable[] = "OPENBLAS_CORETYPE";

// Returns a function of the library that LibTorch multiplies matrices with, or null where it has none of this name.
template <typename Function>
Function* BlasFunction(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Returns OpenBLAS's name for the kernels that fit this processor's instructions, or null for none that is better than
// SSE3.
const char* CoreTypeByInstructions() {
#ifdef __x86_64__
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

}  // namespace

void ConfigureThreads(int n) {
  at::set_num_threads(n);
  // An OpenBLAS with threads of its own, which a LibTorch may be linked to, is not told by that.
  if (auto* set_threads = BlasFunction<void(int)>("openblas_set_num_threads"); set_threads != nullptr) set_threads(n);
}

void ConfigureBlas() {
  auto* core_type = BlasFunction<const char*()>("openblas_get_corename");
  auto* quit = BlasFunction<void()>("gotoblas_dynamic_quit");
  auto* init = BlasFunction<void()>("gotoblas_dynamic_init");
  if (core_type == nullptr || quit == nullptr || init == nullptr || std::getenv(kCoreTypeVariable) != nullptr) return;
  const char* fitting = CoreTypeByInstructions();
  if (fitting == nullptr || absl::string_view(core_type()) != "Prescott") return;
  // OpenBLAS has read the variable when it was loaded, before main. These two make it read the variable again; they are
  // in its versions that fall back. A child process, whose library may be newer, must not inherit the variable.
  setenv(kCoreTypeVariable, fitting, 1);
  quit();
  init();
  unsetenv(kCoreTypeVariable);
}

void ConfigureMalloc(int kept_mib) {
  mallopt(M_MMAP_THRESHOLD, kept_mib << 20);
  mallopt(M_TRIM_THRESHOLD, kept_mib << 24);
  mallopt(M_ARENA_MAX, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

const char* LibTorchVersion() { return TORCH_VERSION; }

}  // namespace terse
