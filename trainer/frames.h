// The kinds of frames between a client or coordinator and a trainer, which answers each request once. The numbers are
// part of the protocol: docs/TRAINER.md describes each frame and its body.
#ifndef TERSE_TRAINER_FRAMES_H_
#define TERSE_TRAINER_FRAMES_H_

#include <cstdint>

namespace terse {

// The version of the trainer protocol, which both ends name when a run is opened.
inline constexpr int64_t kTrainerProtocol = 1;

enum class FrameKind : uint32_t {
  // Requests of the client, each answered by kDone or kFailed.
  kOpen = 1,      // the run
  kMemory = 2,    // the vectors that both ends share, as a file
  kStart = 3,     // asks for the weights that the run starts from
  kTrain = 4,     // local steps from the weights in memory
  kGradient = 5,  // a gradient of SVRG at the weights in memory; of a sandboxed trainer alone
  kMask = 6,      // positions whose momentum becomes zero
  kSave = 7,      // asks for the trainer's state
  kRestore = 8,   // the state that was saved
  // Words of the client that nothing answers.
  kGoOn = 9,       // answers kProgress
  kSealed = 10,    // the result of the newest kTrain is durable
  kFinished = 11,  // the run is over
  // Requests of the coordinator to an evaluator.
  kEvaluate = 32,
  // Requests to a sandboxed process alone, which is a program of this release.
  kExport = 33,       // asks for a TorchScript file with the weights in memory
  kVocabulary = 34,   // asks for the symbols of a text: PackSymbols
  kConfinement = 35,  // asks which parts of the confinement are in force; comes before all others
  kSettings = 36,     // RunConfig; comes before kOpen, as the next one
  kModule = 37,       // the bytes of the run's TorchScript file
  // Answers.
  kDone = 64,
  kFailed = 65,
  kProgress = 66,  // any number of times before the answer to kTrain or kGradient: may training go on?
};

}  // namespace terse

#endif  // TERSE_TRAINER_FRAMES_H_
