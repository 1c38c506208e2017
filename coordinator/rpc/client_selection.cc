#include "coordinator/rpc/client_selection.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "coordinator/rpc/admin_reply.h"
#include "core/status.h"

namespace terse {
namespace {

// The value that a client is sorted by: the text, then the number; one that is unknown comes last in either order.
struct SortKey {
  std::string text;
  double number = 0;
  bool is_known = true;
};

SortKey Number(double value) { return {"", value, true}; }
SortKey Unknown() { return {"", 0, false}; }

// "client-2" comes before "client-10": each run of digits is led by its length, which is written as one character.
std::string NaturalKey(const std::string& name) {
  constexpr size_t kMostDigits = 64;  // a name is no longer
  std::string key;
  const auto is_digit = [&name](size_t i) { return absl::ascii_isdigit(static_cast<unsigned char>(name[i])); };
  for (size_t i = 0; i < name.size();) {
    if (!is_digit(i)) {
      key += absl::ascii_tolower(static_cast<unsigned char>(name[i++]));
      continue;
    }
    while (i + 1 < name.size() && name[i] == '0' && is_digit(i + 1)) ++i;
    const size_t begin = i;
    while (i < name.size() && is_digit(i)) ++i;
    key += '0';
    key += static_cast<char>('0' + std::min<size_t>(i - begin, kMostDigits));
    key += name.substr(begin, i - begin);
  }
  return key;
}

struct Column {
  const char* name;
  SortKey (*key)(const v1::Client& client);
};

constexpr Column kColumns[] = {
    {"index", [](const v1::Client& c) { return Number(c.index()); }},
    {"name",
     [](const v1::Client& c) {
       return SortKey{NaturalKey(c.name()), 0, true};
     }},
    {"state",
     [](const v1::Client& c) {
       return SortKey{c.state(), 0, true};
     }},
    // Behind the head; of a client that is away, nobody knows.
    {"lag", [](const v1::Client& c) { return c.connected() ? Number(-static_cast<double>(c.version())) : Unknown(); }},
    {"last_seen", [](const v1::Client& c) { return Number(static_cast<double>(c.last_seen_us())); }},
    {"samples",
     [](const v1::Client& c) { return c.samples() > 0 ? Number(static_cast<double>(c.samples())) : Unknown(); }},
    {"applied", [](const v1::Client& c) { return Number(static_cast<double>(c.updates_applied())); }},
    {"not_applied", [](const v1::Client& c) { return Number(static_cast<double>(c.updates_not_applied())); }},
    {"resets", [](const v1::Client& c) { return Number(static_cast<double>(c.resets())); }},
    {"reliability", [](const v1::Client& c) { return Number(c.reliability()); }},
    {"device",
     [](const v1::Client& c) {
       return c.has_device() ? SortKey{c.device(), 0, true} : Unknown();
     }},
    {"residual", [](const v1::Client& c) { return c.has_residual_norm() ? Number(c.residual_norm()) : Unknown(); }},
    {"up", [](const v1::Client& c) { return Number(static_cast<double>(c.wire_bytes_up())); }},
    {"down", [](const v1::Client& c) { return Number(static_cast<double>(c.wire_bytes_down())); }},
    {"steps", [](const v1::Client& c) { return Number(static_cast<double>(c.steps_done())); }},
};

absl::StatusOr<Column> ColumnOf(const std::string& name) {
  std::vector<std::string> names;
  for (const Column& column : kColumns) {
    if (name == column.name) return column;
    names.emplace_back(column.name);
  }
  if (name.empty()) return kColumns[0];
  return absl::InvalidArgumentError(
      absl::StrCat("clients are not sorted by '", name, "', but by one of these: ", absl::StrJoin(names, ", ")));
}

struct Candidate {
  SortKey key;
  v1::Client* client = nullptr;
};

bool ComesBefore(const Candidate& a, const Candidate& b, bool descending) {
  if (a.key.is_known != b.key.is_known) return a.key.is_known;
  const SortKey& first = descending ? b.key : a.key;
  const SortKey& second = descending ? a.key : b.key;
  if (first.text != second.text) return first.text < second.text;
  if (first.number != second.number) return first.number < second.number;
  return a.client->index() < b.client->index();
}

bool IsMeant(const v1::ClientsRequest& request, const std::string& wanted, const v1::Client& client) {
  return (request.state().empty() || client.state() == request.state()) &&
         (wanted.empty() || absl::StrContains(absl::AsciiStrToLower(client.name()), wanted));
}

void CountStates(const v1::ClientsReply& all, v1::ClientsReply* out) {
  std::map<std::string, uint32_t> states;
  for (const v1::Client& client : all.clients()) ++states[client.state()];
  for (const auto& [state, clients] : states) {
    v1::StateCount* const count = out->add_states();
    count->set_state(state);
    count->set_clients(clients);
  }
}

}  // namespace

absl::Status AddClients(const RunHost::Live& live, v1::ClientsReply* out) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, live.store->Clients());
  TERSE_ASSIGN_OR_RETURN(const std::vector<LedgerEntry> ledger, live.store->ClientTotals());
  absl::flat_hash_map<int64_t, v1::Client*> by_id;
  for (const ClientRecord& client : clients) {
    v1::Client* const added = out->add_clients();
    Fill(client, added);
    by_id[client.id] = added;
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<BelowRecord> relays, live.store->Below());
  for (const BelowRecord& relay : relays) {
    if (auto it = by_id.find(relay.client); it != by_id.end()) Fill(relay.facts, it->second->mutable_below());
  }
  const EngineView view = live.engine->View();
  out->set_version(view.head.version);
  for (const SessionView& session : view.sessions) {
    if (auto it = by_id.find(session.client); it != by_id.end()) AddSession(session, it->second);
  }
  for (const LedgerEntry& entry : ledger) {
    if (auto it = by_id.find(entry.client); it != by_id.end()) AddBytes(entry, it->second);
  }
  return absl::OkStatus();
}

absl::Status SelectClients(const v1::ClientsRequest& request, v1::ClientsReply* reply) {
  const absl::StatusOr<Column> column = ColumnOf(request.sort());
  if (!column.ok()) return column.status();
  const std::string wanted = absl::AsciiStrToLower(request.name());
  std::vector<Candidate> found;
  for (v1::Client& client : *reply->mutable_clients()) {
    if (IsMeant(request, wanted, client)) found.push_back({column->key(client), &client});
  }
  const size_t begin = std::min<size_t>(request.skip(), found.size());
  const size_t count = request.count() == 0 ? found.size() : request.count();
  const size_t end = begin + std::min(count, found.size() - begin);
  const bool descending = request.descending();
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(end), found.end(),
                    [descending](const Candidate& a, const Candidate& b) { return ComesBefore(a, b, descending); });
  v1::ClientsReply chosen;
  chosen.set_version(reply->version());
  chosen.set_known(static_cast<uint32_t>(reply->clients_size()));
  chosen.set_found(static_cast<uint32_t>(found.size()));
  CountStates(*reply, &chosen);
  for (size_t i = begin; i < end; ++i) chosen.add_clients()->Swap(found[i].client);
  reply->Swap(&chosen);
  return absl::OkStatus();
}

}  // namespace terse
