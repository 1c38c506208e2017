#include "coordinator/rpc/relay_learning.h"

#include "core/status.h"
#include "proto/session_wire.h"
#include "terse/v1/relay.pb.h"

namespace terse {

std::string SerializeRelayFacts(const Welcome& welcome) {
  v1::RelayFacts facts;
  facts.set_family(welcome.family.ToBytes());
  if (!welcome.start_hash.IsZero()) facts.set_start_hash(welcome.start_hash.ToBytes());
  const ShardRange shards = welcome.shards.value_or(ShardRange{welcome.client_index, 1});
  facts.mutable_shards()->set_first(shards.first);
  facts.mutable_shards()->set_count(shards.count);
  *facts.mutable_tensors() = TensorsToWire(*welcome.layout);
  return facts.SerializeAsString();
}

absl::StatusOr<RelayFacts> ParseRelayFacts(absl::string_view bytes) {
  v1::RelayFacts wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || wire.family().empty() ||
      wire.shards().count() < 1) {
    return absl::DataLossError("what the relay keeps of the run above cannot be read");
  }
  RelayFacts facts;
  TERSE_ASSIGN_OR_RETURN(facts.family, Id128::FromBytes(wire.family()));
  TERSE_ASSIGN_OR_RETURN(facts.start_hash, Id128::FromBytes(wire.start_hash()));
  facts.shards = {wire.shards().first(), wire.shards().count()};
  absl::StatusOr<Layout> layout = LayoutFromWire(wire.tensors());
  if (!layout.ok()) return absl::DataLossError(layout.status().message());
  facts.layout = *std::move(layout);
  return facts;
}

}  // namespace terse
