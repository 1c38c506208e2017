#include "coordinator/fleet.h"

#include <utility>

namespace terse {

Session& Fleet::Connect(SessionId id, std::shared_ptr<ClientLink> link) {
  std::unique_ptr<Session>& session = sessions_[id];
  session = std::make_unique<Session>(id, std::move(link));
  return *session;
}

Session* Fleet::Find(SessionId id) {
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

void Fleet::Disconnect(Session& session, int64_t now_us) {
  absences_.ForgetOld(now_us, [this](int64_t client) { SetLeft(client, 0); });
  const int64_t client = session.client();
  if (client >= 0) {
    // Nobody waits for one that is set aside.
    const bool comes_back = session.set_aside_until_us() == 0;
    Evict(session);
    SetLeft(client, comes_back ? now_us : 0);
  }
  sessions_.erase(session.id());
}

void Fleet::Adopt(Session& session, int64_t client, const std::string& name) {
  SetLeft(client, 0);
  Member& member = MemberOf(client);
  member.session = &session;
  member.name = name;
  session.name = name;
  session.client_ = client;
  if (session.set_aside_until_us_ != 0) aside_.insert({session.set_aside_until_us_, client});
  Refresh(client);
}

void Fleet::Evict(Session& session) {
  const int64_t client = session.client_;
  SetAside(session, 0);  // readmitting is for who has the name: this session would be due for ever
  session.client_ = -1;
  session.name.clear();
  session.version_ = absl::nullopt;
  MemberOf(client).session = nullptr;
  Refresh(client);
}

void Fleet::SetAside(Session& session, int64_t until_us) {
  const int64_t client = session.client_;
  if (client >= 0) {
    aside_.erase({session.set_aside_until_us_, client});
    if (until_us != 0) aside_.insert({until_us, client});
  }
  Change(session, &Session::set_aside_until_us_, until_us);
}

void Fleet::SetSamples(Session& session, int64_t samples) {
  session.samples = samples;
  most_samples_ = std::max(most_samples_, samples);
}

void Fleet::Touch(const Session& session) {
  if (session.client_ >= 0) MarkChanged(session.client_);
}

void Fleet::SetPart(int64_t client, bool Standing::*part, bool value) {
  const int64_t left_us = at(client).left_us;
  SetLeft(client, 0);
  Member& member = MemberOf(client);
  if (bulks_ == 0) groups_.Remove(client, member.standing);
  member.standing.*part = value;
  if (bulks_ == 0) groups_.Add(client, member.standing);
  SetLeft(client, left_us);
}

void Fleet::EndRound(bool keep_deliveries) {
  const Bulk bulk(this);
  for (int64_t client = 0; client < size(); ++client) {
    const Standing standing = at(client).standing;
    if (standing.invited) SetInvited(client, false);
    if (standing.delivered && !keep_deliveries) SetDelivered(client, false);
  }
}

void Fleet::SetHead(int64_t version) {
  const Bulk bulk(this);
  head_ = version;
}

std::vector<int64_t> Fleet::DueReadmissions(int64_t now_us) const {
  std::vector<int64_t> due;
  for (auto it = aside_.begin(); it != aside_.end() && it->first <= now_us; ++it) due.push_back(it->second);
  return due;
}

const Member& Fleet::at(int64_t client) const {
  static const Member* const none = new Member();
  return client >= 0 && client < size() ? members_[static_cast<size_t>(client)] : *none;
}

Member& Fleet::MemberOf(int64_t client) {
  while (client >= size()) {
    if (bulks_ == 0) groups_.Add(size(), Standing());
    members_.emplace_back();
  }
  return members_[static_cast<size_t>(client)];
}

ClientNotes& Fleet::NotesOf(int64_t client) {
  absl::optional<ClientNotes>& notes = MemberOf(client).notes;
  if (!notes.has_value()) notes.emplace();
  return *notes;
}

std::vector<int64_t> Fleet::TakeChanged() {
  for (int64_t client : changed_) MemberOf(client).changed = false;
  return std::exchange(changed_, {});
}

Standing Fleet::StandingOf(const Member& member) const {
  Standing standing;
  standing.invited = member.standing.invited;
  standing.delivered = member.standing.delivered;
  if (member.session == nullptr) return standing;
  const Session& session = *member.session;
  const bool free = session.IsFree();
  standing.active = !session.refused() && session.set_aside_until_us() == 0;
  standing.idle = free && session.version() == head_;
  standing.spare = free && session.version().has_value() && !session.draining() && !session.awaits_checkpoint();
  const bool works_or_lags = (free && session.version().has_value()) || session.assigned_round() != 0;
  standing.ready = standing.idle || (buffered_ && standing.active && works_or_lags);
  return standing;
}

void Fleet::Refresh(int64_t client) {
  MarkChanged(client);
  if (bulks_ > 0) return;
  Member& member = MemberOf(client);
  const Standing standing = StandingOf(member);
  if (standing.index() == member.standing.index()) return;
  groups_.Remove(client, member.standing);
  member.standing = standing;
  groups_.Add(client, standing);
}

void Fleet::Regroup() {
  groups_.Clear();
  for (int64_t client = 0; client < size(); ++client) {
    Member& member = MemberOf(client);
    member.standing = StandingOf(member);
    groups_.Add(client, member.standing);
  }
}

void Fleet::MarkChanged(int64_t client) {
  Member& member = MemberOf(client);
  if (!std::exchange(member.changed, true)) changed_.push_back(client);
}

void Fleet::SetLeft(int64_t client, int64_t left_us) {
  if (client >= size() && left_us == 0) return;
  Member& member = MemberOf(client);
  if (member.left_us != 0) absences_.Remove(client, member.standing, member.left_us);
  member.left_us = left_us;
  if (left_us != 0) absences_.Add(client, member.standing, left_us);
}

bool Fleet::IsConsistent() const {
  for (int64_t client = 0; client < size(); ++client) {
    const Member& member = at(client);
    if (member.session != nullptr && member.session->client() != client) return false;
    if (StandingOf(member).index() != member.standing.index()) return false;
  }
  for (const auto& [id, session] : sessions_) {
    if (session->client() >= 0 && Of(session->client()) != session.get()) return false;
  }
  const auto all = groups_.Select([](Standing) { return true; });
  for (int64_t client = 0; client < size(); ++client) {
    if (static_cast<int64_t>(all.size()) != size() || all[static_cast<size_t>(client)] != client) return false;
  }
  for (size_t i = 0; i < Standing::kCount; ++i) {
    const auto group = groups_.Select([i](Standing standing) { return standing.index() == i; });
    for (int64_t client : group) {
      if (at(client).standing.index() != i) return false;
    }
  }
  return true;
}

}  // namespace terse
