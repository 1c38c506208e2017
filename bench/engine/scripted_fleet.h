// Clients as a coordinator's engine meets them: events in, messages out, without connections and without training.
#ifndef TERSE_BENCH_ENGINE_SCRIPTED_FLEET_H_
#define TERSE_BENCH_ENGINE_SCRIPTED_FLEET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/fleet/shared_model.h"
#include "bench/fleet/update_pool.h"
#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/client_link.h"
#include "coordinator/events.h"
#include "core/run_config.h"

namespace terse {

// All clients of a run, which takes everybody's update in every round. Each checks in, makes version 0 by itself, says
// that it is ready, answers every assignment with an update that was encoded before, and leaves when the run is
// finished. The first one applies every downstream message. Whatever they hear is held against what they expect to
// hear; a session's messages are delivered in order. Not thread-safe.
class ScriptedFleet {
 public:
  // `initial` are the weights of version 0. Statuses of SharedModel::Make, of UpdatePool::Prepare and of
  // MakeAggregationRule.
  static absl::StatusOr<std::unique_ptr<ScriptedFleet>> Make(const RunConfig& run, const Layout& layout,
                                                             std::vector<float> initial);
  ~ScriptedFleet();

  const Codec& codec() const { return model_->codec(); }

  // Lets clients hear what was sent to them, and new ones connect, until up to `most` events have come of it. Updates
  // are checked and measured, as the coordinator's edge does it. Empty when nobody has anything to hear. INTERNAL when
  // a client hears what it should not.
  absl::StatusOr<std::vector<Event>> NextEvents(size_t most);

  // The first assignment was sent.
  bool has_work() const { return has_work_; }
  // The newest version that was announced to clients.
  int64_t version() const { return version_; }
  // Everybody has left.
  bool is_over() const { return left_ == size(); }
  int64_t size() const { return static_cast<int64_t>(messages_.size()); }

  // INTERNAL unless every client was given work once, and heard one receipt, one verdict and one model, for every round
  // up to `version`, and the updates, averaged in the order of the clients, lead from version 0 to the weights with
  // this hash.
  absl::Status Check(int64_t version, Id128 hash);
  // Bytes of the messages of client `index`.
  int64_t bytes_up(int64_t index) const;
  int64_t bytes_down(int64_t index) const;

 private:
  class Client;
  struct Heard {
    int64_t client = 0;
    FromServer message;
    bool drained = false;  // everything before it has left, and the engine wants to know; there is no message
  };

  ScriptedFleet(std::unique_ptr<SharedModel> model, UpdatePool pool, std::unique_ptr<const AggregationRule> rule,
                std::vector<float> initial);
  void Hear(int64_t client, ToClient words);
  absl::Status React(Heard heard, std::vector<Event>* events);
  absl::Status Train(Client& client, const Assignment& assignment, std::vector<Event>* events);
  absl::Status Apply(Client& client, const Downstream& downstream);
  // The updates of a round move the weights that the fleet works out by itself.
  absl::Status Average(int64_t round);

  const std::unique_ptr<SharedModel> model_;
  const UpdatePool pool_;
  const std::unique_ptr<const AggregationRule> rule_;
  std::vector<float> weights_;
  std::shared_ptr<std::vector<Client>> clients_owner_;
  std::vector<Client>& clients_;
  std::vector<absl::string_view> messages_;  // of a round, one of each client
  std::deque<Heard> heard_;
  int64_t connected_ = 0;
  int64_t left_ = 0;
  int64_t version_ = 0;
  bool has_work_ = false;
};

}  // namespace terse

#endif  // TERSE_BENCH_ENGINE_SCRIPTED_FLEET_H_
