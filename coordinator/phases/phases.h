// The phases; phase.h has the table and the contract.
#ifndef TERSE_COORDINATOR_PHASES_PHASES_H_
#define TERSE_COORDINATOR_PHASES_PHASES_H_

#include "coordinator/phases/phase.h"

namespace terse {

std::unique_ptr<Phase> MakeSelecting();
std::unique_ptr<Phase> MakeCollecting();
std::unique_ptr<Phase> MakeBuffering();  // collecting, in a buffered run
std::unique_ptr<Phase> MakeCommitting();
std::unique_ptr<Phase> MakeRelaying();  // committing, in a relay
std::unique_ptr<Phase> MakeFinishing();

}  // namespace terse

#endif  // TERSE_COORDINATOR_PHASES_PHASES_H_
