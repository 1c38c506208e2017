#include "learning/runtime.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace terse {
namespace {

TEST(ConfigureThreadsTest, HoldsForLibTorchAndForItsBlas) {
  const auto blas_threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  for (const int threads : {2, 1}) {
    ConfigureThreads(threads);
    EXPECT_EQ(at::get_num_threads(), threads);
    if (blas_threads != nullptr) {
      EXPECT_EQ(blas_threads(), threads);
    }
  }
}

#ifdef __x86_64__
// This can only fail on a processor that the OpenBLAS here does not know.
TEST(ConfigureBlasTest, NoProcessorWithAvx2TakesThoseOfSse3UnlessTheUserSaysSo) {
  const auto core_type = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core_type == nullptr) GTEST_SKIP() << "this LibTorch multiplies with another library than OpenBLAS";
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    GTEST_SKIP() << "this processor has no AVX2, so SSE3 is the best that OpenBLAS can take";
  }
  const std::string at_first = core_type();
  setenv("OPENBLAS_CORETYPE", at_first.c_str(), 1);
  ConfigureBlas();
  EXPECT_EQ(core_type(), at_first);
  unsetenv("OPENBLAS_CORETYPE");
  ConfigureBlas();
  EXPECT_STRNE(core_type(), "Prescott");
  EXPECT_EQ(std::getenv("OPENBLAS_CORETYPE"), nullptr);
}
#endif

}  // namespace
}  // namespace terse
