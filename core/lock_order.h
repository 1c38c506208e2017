// The check of the order of locks.
#ifndef TERSE_CORE_LOCK_ORDER_H_
#define TERSE_CORE_LOCK_ORDER_H_

namespace terse {

// Debian's Abseil notes at every lock of a mutex which ones are held, to report deadlocks, and does so behind one lock
// of the whole process; gRPC's mutexes are Abseil's. Tests keep that. A program that serves many connections turns it
// off at its start, before it has threads.
void SkipLockOrderChecks();

}  // namespace terse

#endif  // TERSE_CORE_LOCK_ORDER_H_
