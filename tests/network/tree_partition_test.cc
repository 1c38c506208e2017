// A network between the tiers of a tree that is cut, now above the relays and now below one of them: for a moment, for
// seconds in which nothing is lost, or in one direction alone. The books of the whole tree balance bit for bit.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/random.h"
#include "gtest/gtest.h"
#include "tests/e2e/relay_tree.h"
#include "tests/network/tcp_proxy.h"

namespace terse {
namespace {

// All connections of one tier's part.
class Partition {
 public:
  explicit Partition(const std::string& target) : proxy_(target, [](int) { return LinkScript(); }) {}

  std::string address() const { return proxy_.address(); }

  // Every connection ends, and nobody gets through before Heal.
  void Cut() {
    proxy_.SetAccepting(false);
    proxy_.ResetAll();
  }
  // Nothing gets through before Heal, and nothing is lost.
  void Freeze() {
    proxy_.SetAccepting(false);
    proxy_.ForEachOpen(
        [](int, LinkScript* script) { script->up.bytes_per_second = script->down.bytes_per_second = 0; });
  }
  // All bytes that go that way from now on are lost; the other way, all goes on. Heal ends the connections.
  void Lose(bool up) {
    proxy_.ForEachOpen([up](int, LinkScript* script) { (up ? script->up : script->down).lose_after = 0; });
    loses_ = true;
  }
  void Heal() {
    if (loses_) proxy_.ResetAll();
    loses_ = false;
    proxy_.ForEachOpen(
        [](int, LinkScript* script) { script->up.bytes_per_second = script->down.bytes_per_second = kNeverBytes; });
    proxy_.SetAccepting(true);
  }
  int connections() const { return static_cast<int>(proxy_.Counts().size()); }

 private:
  TcpProxy proxy_;
  bool loses_ = false;
};

// A tree with a network above its relays and below each of them, which is disturbed at random while the run goes on.
void Disturb(RelayTree::Shape shape, int disturbances, uint64_t seed) {
  shape.tcp = true;
  RelayTree tree(shape);
  std::vector<std::unique_ptr<Partition>> network;
  network.push_back(std::make_unique<Partition>(tree.root_address()));
  tree.Route(tree.root_address(), network.back()->address());
  for (int relay = 0; relay < shape.relays; ++relay) {
    network.push_back(std::make_unique<Partition>(tree.relay_address(relay)));
    tree.Route(tree.relay_address(relay), network.back()->address());
  }
  tree.Start();
  Random random(seed, /*stream=*/0);
  for (int i = 1; i <= disturbances; ++i) {
    ASSERT_TRUE(tree.WaitForRounds(i * shape.rounds / (disturbances + 2), absl::Seconds(60)))
        << "at " << tree.Version() << " after " << i - 1 << " disturbances\n"
        << tree.Outputs();
    // As often above the relays as below them.
    Partition& part = *network[random.Below(2) == 0 ? 0 : 1 + random.Below(static_cast<uint64_t>(shape.relays))];
    const uint64_t kind = random.Below(4);
    if (kind == 0) part.Cut();
    if (kind == 1) part.Freeze();
    if (kind >= 2) part.Lose(/*up=*/kind == 2);
    absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(50 + random.Below(1000))));
    part.Heal();
  }
  tree.Finish(absl::Seconds(120));
  for (size_t part = 0; part < network.size(); ++part) EXPECT_GT(network[part]->connections(), 2) << part;
  tree.ExpectBooksBalance();
  EXPECT_EQ(tree.Resets(), 0);
}

TEST(TreePartition, LosesNothingAndDoublesNothing) {
  RelayTree::Shape shape;
  shape.rounds = 200;
  Disturb(shape, /*disturbances=*/30, /*seed=*/3);
}

TEST(TreePartition, NorWithRelaysThatForward) {
  RelayTree::Shape shape;
  shape.rounds = 200;
  shape.forwards = true;
  Disturb(shape, /*disturbances=*/30, /*seed=*/5);
}

}  // namespace
}  // namespace terse
