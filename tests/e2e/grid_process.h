// The first call that the processes of end-to-end tests make.
#ifndef TERSE_TESTS_E2E_GRID_PROCESS_H_
#define TERSE_TESTS_E2E_GRID_PROCESS_H_

#include <sys/prctl.h>

#include <csignal>

namespace terse {

// The process dies with the test that started it, however that one ends.
inline void BelongToParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace terse

#endif  // TERSE_TESTS_E2E_GRID_PROCESS_H_
