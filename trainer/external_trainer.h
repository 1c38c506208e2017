// Trainers in a program of the user's own, in any language, over the trainer protocol (docs/TRAINER.md).
#ifndef TERSE_TRAINER_EXTERNAL_TRAINER_H_
#define TERSE_TRAINER_EXTERNAL_TRAINER_H_

#include <functional>
#include <memory>
#include <string>

#include "core/trainer.h"
#include "trainer/trainer_peer.h"
#include "trainer/trainer_source.h"

namespace terse {

struct ExternalTrainerOptions {
  TrainerSource source;
  double seconds = 3600;  // that a round's training, or one's start, may last
  // Whether this process should stop, asked while a trainer works; it then has kStopGraceSeconds left. May be empty.
  std::function<bool()> stop;
  // Hears what the trainer says that it is. May be empty.
  std::function<void(const std::string& line)> log;
};

// The trainer's answers are not believed: everything is checked before it is used, and copied before it is checked.
// Beside the statuses of LocalTrainer, and those that the trainer answers, methods return
//   UNAVAILABLE          the trainer ended, took too long, or did not stop when asked: it is lost, and all later calls
//                        say so too. A new one can go on from the last state that was saved
//   INTERNAL             it answered what no trainer answers
//   FAILED_PRECONDITION  from Train: a result that is not finite, with the tensor's name; from the factory: another
//                        version of the protocol, or a type of numbers that is not supported
// Memory: three vectors of the model beside those of the caller, shared with the trainer.
TrainerFactory ExternalTrainerFactory(ExternalTrainerOptions options);

// The trainer that `peer` was opened for. Its statuses are those above; where it is confined a result that is not
// finite is INTERNAL, because such a trainer looks itself. One that is not confined has no gradients.
std::unique_ptr<LocalTrainer> MakeExternalTrainer(std::unique_ptr<TrainerPeer> peer);

}  // namespace terse

#endif  // TERSE_TRAINER_EXTERNAL_TRAINER_H_
