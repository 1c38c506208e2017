// A step of the program is a byte, what and who: the low four bits say what happens (kSteps), the high ones to which
// client; more bytes follow where a step has choices.
#include <limits>
#include <string>

#include "tests/fuzz/session_world.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

constexpr int kMaxSteps = 120;

Id128 AnyId(SessionWorld* world, const Actor& actor, uint8_t choice) {
  const Update* sent = world->Sent(choice / 8);
  switch (choice % 6) {
    case 0:
      return Id128{};
    case 1:
      return actor.prev_applied;
    case 2:
      return sent == nullptr ? Id128{1, 1} : sent->update_id;
    case 3:
      return actor.sealed.has_value() ? actor.sealed->update_id : Id128{2, 2};
    case 4:
      return (*world->store().Run())->lineage;
    default:
      return Id128{choice, 3};
  }
}

int64_t AnyNumber(uint8_t choice) {
  if (choice < 0xf0) return choice % 16;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t edges[] = {kMost, kMost - 1, int64_t{1} << 32, -1, std::numeric_limits<int64_t>::min(), 1 << 20};
  return edges[choice % 6];
}

std::string AnyName(SessionWorld* world, uint8_t choice) {
  const std::string names[] = {
      "", ".", "..", "../a0", "a/b", "a\xff", std::string(65, 'a'), "a\n", std::string(1, '\0')};
  constexpr size_t kBad = sizeof names / sizeof names[0];
  return choice % 16 < kBad ? names[choice % 16] : world->actor(choice).name;
}

void Lie(SessionWorld* world, Actor* actor, Input* input) {
  CheckIn message;
  message.name = AnyName(world, input->Byte());
  message.protocol_version = input->Byte() % 8 == 0 ? 77 : kProtocolVersion;
  message.lineage = AnyId(world, *actor, input->Byte());
  message.prev_applied = AnyId(world, *actor, input->Byte());
  message.pending_update_id = AnyId(world, *actor, input->Byte());
  message.pending_round = AnyNumber(input->Byte());
  const uint8_t flags = input->Byte();
  message.residual_lost = (flags & 1) != 0;
  if ((flags & 2) != 0) message.run = (flags & 4) != 0 ? world->config().name : "../x";
  message.process = {0, static_cast<uint64_t>(flags >> 3 & 3)};
  message.connection = flags >> 5;
  actor->honest = false;
  world->Say(actor, std::move(message));
}

void SayReady(SessionWorld* world, Actor* actor, Input* input) {
  Ready message;
  const uint8_t flags = input->Byte();
  if ((flags & 1) != 0) message.version = AnyNumber(input->Byte());
  message.model_hash = AnyId(world, *actor, input->Byte());
  message.layout_hash = (flags & 2) != 0 ? AnyId(world, *actor, input->Byte()) : world->layout_hash();
  message.samples = AnyNumber(input->Byte());
  if (actor->history.has_value() && (flags & 4) != 0) message.history_hash = actor->history->Hash();
  world->Say(actor, message);
}

// An update of the program's making: with the right id, or any; packed, or not what it says to be.
void SayUpdate(SessionWorld* world, Actor* actor, Input* input) {
  Update update;
  const uint8_t round = input->Byte();
  update.round = AnyNumber(round);
  const uint8_t flags = input->Byte();
  update.message = (flags & 1) != 0 ? std::string(input->Take(flags / 16)) : world->message(flags / 16);
  update.train_us = (flags & 2) != 0 ? AnyNumber(input->Byte()) : 1;
  update.loss = (flags & 4) != 0 ? FloatFromBits(input->Word32()) : 0.5f;
  update.update_id = (flags & 8) != 0 ? AnyId(world, *actor, input->Byte())
                                      : MakeUpdateId((*world->store().Run())->lineage, update.round, actor->client,
                                                     actor->prev_applied, update.message);
  if ((round & 0x40) != 0) world->Pack(*actor, &update);
  if ((round & 0x20) != 0) update.packed = !update.packed;
  world->LieAbout(*actor);
  world->Say(actor, std::move(update));
}

void Replay(SessionWorld* world, Actor* actor, Input* input) {
  const Update* sent = world->Sent(input->Byte());
  world->LieAbout(*actor);
  if (sent != nullptr) world->Say(actor, Update(*sent));
}

void Mislead(SessionWorld* world, Input* input) {
  const uint8_t choice = input->Byte();
  world->Mislead(&world->actor(choice % 8), world->actor(choice / 8));
}

void MoveClock(SessionWorld* world, Input* input) {
  constexpr double kSeconds[] = {0.5, 3, 9.5, 11, 16, 30, 600, -5};
  const double seconds = kSeconds[input->Byte() % 8];
  seconds < 0 ? world->clock().Set(seconds) : world->clock().Advance(seconds);
  world->Handle(Tick{});
}

void Evaluate(SessionWorld* world, Input* input) {
  const uint8_t choice = input->Byte();
  world->evaluator().result = Evaluation{choice / 255.0, choice / 64.0};
  if (choice == 1) world->evaluator().result = absl::InternalError("no test set");
  if (choice == 2) world->evaluator().result = Evaluation{std::numeric_limits<double>::quiet_NaN(), 0.5};
  world->RunBackground();
}

void Operate(SessionWorld* world, Input* input) {
  const uint8_t choice = input->Byte();
  if (choice % 8 == 0) return world->Handle(StopRequested{});
  if (choice % 8 <= 2) return world->Handle(PauseRequested{"by command"});
  if (choice % 8 <= 4) return world->Handle(ResumeRequested{});
  if (choice % 8 == 5) return world->Handle(AbortRequested{"by command"});
  const int64_t until = choice % 8 == 6 ? 0 : world->clock().NowMicros() + 1'000'000 * (choice / 8);
  const int64_t client = choice / 8 % 8;
  // An operator names a client that there is; coordinator/rpc looks it up.
  if (world->store().GetClient(client).ok()) world->Handle(SetAsideRequested{client, until, "by command"});
}

void Step(SessionWorld* world, Input* input) {
  const uint8_t step = input->Byte();
  Actor* actor = &world->actor(step / 16);
  switch (step % 16) {
    case 0:
      return world->Connect(actor);
    case 1:
      return world->Disconnect(actor);
    case 2:
    case 3:
      world->Connect(actor);
      return world->CheckInHonestly(actor);
    case 4:
    case 5:
      return world->ReadyHonestly(actor);
    case 6:
    case 7:
      return world->Push(actor);
    case 8:
      return Lie(world, actor, input);
    case 9:
      return SayReady(world, actor, input);
    case 10:
      return SayUpdate(world, actor, input);
    case 11:
      return Replay(world, actor, input);
    case 12:
      return MoveClock(world, input);
    case 13:
      return Evaluate(world, input);
    case 14:
      return Operate(world, input);
    default:
      break;
  }
  if (step / 16 < 4) return world->Restart();
  if (step / 16 < 10) return world->Say(actor, Progress{AnyNumber(input->Byte()), AnyNumber(input->Byte())});
  if (step / 16 < 12) return world->Say(actor, Leaving{});
  if (step / 16 == 12) return Mislead(world, input);
  world->RunBackground();
}

}  // namespace

void FuzzSession(const char*, const uint8_t* data, size_t size) {
  Input input(data, size);
  const bool goes_on = input.Byte() % 4 == 1;  // it takes as long as a program
  SessionWorld world(&input);
  for (int i = 0; i < kMaxSteps && !input.empty(); ++i) Step(&world, &input);
  if (goes_on) world.CheckThatRoundsGoOn();
}

}  // namespace terse
