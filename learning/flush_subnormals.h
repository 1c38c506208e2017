// Numbers nearer to 0 than 1.2e-38 (subnormal ones) are taken as 0 while LibTorch computes. Processors for x86 need a
// hundred times as long for an operation on such a number, and the gradients of an LSTM that has learned to forget are
// full of them: bench/RESULTS.md, "Subnormal numbers".
#ifndef TERSE_LEARNING_FLUSH_SUBNORMALS_H_
#define TERSE_LEARNING_FLUSH_SUBNORMALS_H_

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace terse {

// Holds for the calling thread, and for threads that it starts meanwhile, as OpenMP's; the end of the object restores
// what held before for the calling thread. Does nothing on other processors than x86.
class FlushSubnormals {
 public:
  FlushSubnormals() {
#ifdef __SSE2__
    _mm_setcsr(before_ | kResultsAndOperands);
#endif
  }
  ~FlushSubnormals() {
#ifdef __SSE2__
    _mm_setcsr(before_);
#endif
  }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

#ifdef __SSE2__
 private:
  // The bits FTZ and DAZ of MXCSR.
  static constexpr unsigned kResultsAndOperands = 0x8040;
  const unsigned before_ = _mm_getcsr();
#endif
};

}  // namespace terse

#endif  // TERSE_LEARNING_FLUSH_SUBNORMALS_H_
