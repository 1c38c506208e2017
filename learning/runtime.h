// Process-wide settings that a main makes once, before any training.
#ifndef TERSE_LEARNING_RUNTIME_H_
#define TERSE_LEARNING_RUNTIME_H_

namespace terse {

inline constexpr int kTrainingKeepsMib = 64;

// Number of threads inside one LibTorch operation, n >= 1, in whatever thread it is called from here on. Use 1 for
// several trainers in one process or on one machine: results are then also independent of the number of cores.
void ConfigureThreads(int n);

// Has OpenBLAS, if LibTorch multiplies matrices with it, use the widest vector instructions of this processor. Versions
// before 0.3.25 (Debian 12 has 0.3.21) fall back to SSE3 on a processor that is newer than they are, which makes an
// LSTM take 1.6 times as long (bench/RESULTS.md, "OpenBLAS on new processors"). Does nothing where OpenBLAS knows the
// processor, or where OPENBLAS_CORETYPE says what to use. For the start of a program, before it has threads or
// computes.
void ConfigureBlas();

// Keeps free blocks of up to `kept_mib` MiB, and 16 times as much at the end of the heap, in the allocator. Larger
// blocks go back to the system as soon as they are free. Training takes and frees the same blocks in every step, and
// would fault their pages in again; a coordinator takes a message of another size in every round, and what it kept of
// them would be memory that nobody uses. There is one arena a core: bursts of messages, each taken by another thread,
// would fill each of glibc's eight a core. For the start of a program, before it has threads.
void ConfigureMalloc(int kept_mib = kTrainingKeepsMib);

// Returns LibTorch's version, as "1.13.1".
const char* LibTorchVersion();

}  // namespace terse

#endif  // TERSE_LEARNING_RUNTIME_H_
