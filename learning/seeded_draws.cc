#include "learning/seeded_draws.h"

#include <ATen/Context.h>

namespace terse {
namespace {

std::mutex& DrawingMutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

SeededDraws::SeededDraws(uint64_t seed) : lock_(DrawingMutex()) { at::manual_seed(seed); }

}  // namespace terse
