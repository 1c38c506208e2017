// The function that libFuzzer calls. It is compiled once for every target, with TERSE_FUZZ_TARGET and TERSE_FUZZ_ROW.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terse::TERSE_FUZZ_TARGET(TERSE_FUZZ_ROW, data, size);
  return 0;
}
