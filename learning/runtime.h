// Process-wide settings that a main makes once, before any training.
#ifndef TERSE_LEARNING_RUNTIME_H_
#define TERSE_LEARNING_RUNTIME_H_

namespace terse {

// Number of threads inside one LibTorch operation, n >= 1, in whatever thread it is called from here on. Use 1 for
// several trainers in one process or on one machine: results are then also independent of the number of cores.
void ConfigureThreads(int n);

// Keeps blocks of up to 64 MiB in the allocator instead of returning them to the system after every step, which would
// fault their pages in again. Costs memory that stays with the process. Larger blocks, such as the vectors of a large
// model, go back as soon as they are free. There is one arena a core: bursts of messages, each taken by another thread,
// would fill each of glibc's eight a core. For the start of a program, before it has threads.
void ConfigureMalloc();

// Returns LibTorch's version, as "1.13.1".
const char* LibTorchVersion();

}  // namespace terse

#endif  // TERSE_LEARNING_RUNTIME_H_
