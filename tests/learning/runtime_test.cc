#include "learning/runtime.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

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

}  // namespace
}  // namespace terse
