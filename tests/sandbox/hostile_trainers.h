// Trainers as nobody wants them, for a sandboxed process: each does one thing, and says in its result what came of it.
#ifndef TERSE_TESTS_SANDBOX_HOSTILE_TRAINERS_H_
#define TERSE_TESTS_SANDBOX_HOSTILE_TRAINERS_H_

#include "core/trainer.h"

namespace terse {

// Makes trainers that do what config.name says: the name of a row of the table in hostile_trainers.cc, or "grid" for an
// honest one. config.data.name is the target of the deed: a path, a port. Train returns FAILED_PRECONDITION with the
// reason when the deed failed, and OK when it was done.
TrainerFactory HostileTrainerFactory();

}  // namespace terse

#endif  // TERSE_TESTS_SANDBOX_HOSTILE_TRAINERS_H_
