// The clients of a run: who is connected, who can work, who is owed what, and who is set aside. A room of the engine
// (engine_state.h) that knows neither the round's updates nor the model nor the store.
#ifndef TERSE_COORDINATOR_FLEET_H_
#define TERSE_COORDINATOR_FLEET_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/types/optional.h"
#include "coordinator/absences.h"
#include "coordinator/member.h"
#include "coordinator/session.h"
#include "coordinator/standing.h"

namespace terse {

// Invariants: a client has at most one session; a member's standing is that of its session and of the open round;
// every member is in the group of its standing. A change is O(log clients), and within a Bulk O(1). Times are of the
// monotonic clock. Used from the engine's thread only.
class Fleet {
 public:
  // In a `buffered` run, clients that lag behind or work on are ready too.
  Fleet(bool buffered, int64_t began_us) : buffered_(buffered), began_us_(began_us) {}
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Sessions. References live until Disconnect.
  Session& Connect(SessionId id, std::shared_ptr<ClientLink> link);
  void Disconnect(Session& session, int64_t now_us);
  // Null: there is none.
  Session* Find(SessionId id);
  // The connection that has the client's name; null: none.
  Session* Of(int64_t client) const { return at(client).session; }
  // In the order in which they connected.
  const std::map<SessionId, std::unique_ptr<Session>>& sessions() const { return sessions_; }

  // The session is the client's from now on; no other one may be.
  void Adopt(Session& session, int64_t client, const std::string& name);
  // The session has no client any more: another connection took its name.
  void Evict(Session& session);
  void Refuse(Session& session) { Change(session, &Session::refused_, true); }
  void SetVersion(Session& session, absl::optional<int64_t> version) { Change(session, &Session::version_, version); }
  void SetDraining(Session& session, bool draining) { Change(session, &Session::draining_, draining); }
  void SetAwaitsCheckpoint(Session& session, bool awaits) { Change(session, &Session::awaits_checkpoint_, awaits); }
  void SetAssigned(Session& session, int64_t round) { Change(session, &Session::assigned_round_, round); }
  void SetOwed(Session& session, int64_t round) { Change(session, &Session::owes_round_, round); }
  // 0 readmits it.
  void SetAside(Session& session, int64_t until_us);
  void SetSamples(Session& session, int64_t samples);
  // Others may look at something of it that has changed and has no standing.
  void Touch(const Session& session);

  // The clients' part in the open round.
  void SetInvited(int64_t client, bool invited) { SetPart(client, &Standing::invited, invited); }
  void SetDelivered(int64_t client, bool delivered) { SetPart(client, &Standing::delivered, delivered); }
  // Nobody is invited any more, and without `keep_deliveries` nobody has delivered.
  void EndRound(bool keep_deliveries);
  // The model is at this version: only who holds it is idle.
  void SetHead(int64_t version);

  // By standing. Not within a Bulk.
  const StandingGroups& groups() const { return groups_; }
  // Returns when nobody is on the way any more: no active client that `pending` matches, and no absent one that may
  // still come back and that `wanted` matches. That is in the past when it is so already, and the largest number while
  // such a client is connected. Of an absent client, only `invited` and `delivered` count.
  template <typename Pending, typename Wanted>
  int64_t NobodyComesMicros(Pending pending, Wanted wanted) const {
    if (groups_.Count([&](Standing s) { return s.active && pending(s); }) > 0) return kNobody;
    return std::max(began_us_ + kReturnMicros, absences_.LastReturnMicros(wanted));
  }
  // When the next connected client is to be readmitted; kNobody for never.
  int64_t NextReadmissionMicros() const { return aside_.empty() ? kNobody : aside_.begin()->first; }
  // The connected clients whose time is over.
  std::vector<int64_t> DueReadmissions(int64_t now_us) const;
  static constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();

  // Members by client index, up to the newest that checked in; others are as if they had not.
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  const Member& at(int64_t client) const;
  // The largest number of samples that a member ever had; at least 1.
  int64_t most_samples() const { return most_samples_; }
  void SetReliability(int64_t client, double reliability) { MemberOf(client).reliability = reliability; }
  // Makes notes of a client that has none.
  ClientNotes& NotesOf(int64_t client);
  // Clients of which something changed since this was called last.
  std::vector<int64_t> TakeChanged();
  // Whether the invariants hold, by looking at everything: for tests.
  bool IsConsistent() const;

  // While it lives, changes of many clients leave the groups as they were; the last one makes them anew, O(clients).
  class Bulk {
   public:
    explicit Bulk(Fleet* fleet) : fleet_(fleet) { ++fleet_->bulks_; }
    ~Bulk() {
      if (--fleet_->bulks_ == 0) fleet_->Regroup();
    }
    Bulk(const Bulk&) = delete;
    Bulk& operator=(const Bulk&) = delete;

   private:
    Fleet* const fleet_;
  };

 private:
  template <typename T, typename V>
  void Change(Session& session, T Session::*field, V value) {
    session.*field = value;
    if (session.client_ >= 0) Refresh(session.client_);
  }
  Member& MemberOf(int64_t client);
  Standing StandingOf(const Member& member) const;
  // Puts the member into the group of its standing, after a change.
  void Refresh(int64_t client);
  void Regroup();
  void MarkChanged(int64_t client);
  void SetLeft(int64_t client, int64_t left_us);
  void SetPart(int64_t client, bool Standing::*part, bool value);

  const bool buffered_;
  const int64_t began_us_;
  int64_t head_ = 0;
  int bulks_ = 0;
  int64_t most_samples_ = 1;
  std::map<SessionId, std::unique_ptr<Session>> sessions_;
  std::deque<Member> members_;  // by client index
  StandingGroups groups_;
  Absences absences_;
  absl::btree_set<std::pair<int64_t, int64_t>> aside_;  // connected clients: until when, and who
  std::vector<int64_t> changed_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_FLEET_H_
