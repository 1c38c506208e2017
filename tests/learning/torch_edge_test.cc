#include "learning/torch_edge.h"

#include <ATen/ATen.h>

#include <limits>

#include "gtest/gtest.h"

namespace terse {
namespace {

#ifdef __SSE2__
float HalfOf(float value) {
  const volatile float operand = value;
  return operand * 0.5f;
}

constexpr float kLeastNormal = std::numeric_limits<float>::min();

float ProductByLibTorch(float value, double factor) {
  float product = -1;
  const absl::Status status = CatchTorch("multiplying", [&] {
    product = at::full({64}, value).mul(factor).max().item<float>();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return product;
}

TEST(FlushSubnormals, LibTorchTakesThemAsZero) {
  EXPECT_EQ(ProductByLibTorch(4 * kLeastNormal, 0.5), 2 * kLeastNormal);
  EXPECT_EQ(ProductByLibTorch(kLeastNormal, 0.5), 0) << "as a result";
  EXPECT_EQ(ProductByLibTorch(kLeastNormal / 2, 4), 0) << "as an operand";
}

TEST(FlushSubnormals, NobodyElseDoes) {
  ProductByLibTorch(1, 0.5);
  EXPECT_GT(HalfOf(kLeastNormal), 0);
  const absl::Status thrown = CatchTorch("failing", [&]() -> absl::Status {
    const absl::Status inner = CatchTorch("within", [] { return absl::OkStatus(); });
    EXPECT_EQ(HalfOf(kLeastNormal), 0) << "the end of an inner call is not the end of an outer one";
    at::zeros({2}).view({3});
    return inner;
  });
  EXPECT_FALSE(thrown.ok());
  EXPECT_GT(HalfOf(kLeastNormal), 0);
}
#endif

}  // namespace
}  // namespace terse
