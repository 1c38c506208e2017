// Trainers as nobody wants them, for a sandboxed process: each does one thing, and says in its result what came of it.
#ifndef TERSE_TESTS_SANDBOX_HOSTILE_TRAINERS_H_
#define TERSE_TESTS_SANDBOX_HOSTILE_TRAINERS_H_

#include "core/trainer.h"

namespace terse {

// What the trainer does is config.name: the name of a row of the table in hostile_trainers.cc, "grid" for one that is
// honest. config.data.name is what it does it to: a path, a port. Train returns FAILED_PRECONDITION with the reason
// when the deed failed, and OK when it was done.
TrainerFactory HostileTrainerFactory();

}  // namespace terse

#endif  // TERSE_TESTS_SANDBOX_HOSTILE_TRAINERS_H_
