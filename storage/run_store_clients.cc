// The changes to the rows of clients, one transaction each.
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/event_kinds.h"
#include "storage/sql_run_store.h"

namespace terse {

absl::StatusOr<ClientRecord> SqlRunStore::RegisterClient(const std::string& name, int64_t now_us) {
  if (name.empty()) return absl::InvalidArgumentError("a client needs a name");
  ClientRecord client;
  TERSE_RETURN_IF_ERROR(Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO clients (id, name, first_seen_us, last_seen_us) "
                                     "SELECT COALESCE(MAX(id) + 1, 0), ?1, ?2, ?2 FROM clients WHERE true "
                                     "ON CONFLICT (name) DO UPDATE SET last_seen_us = excluded.last_seen_us")
                              .Text(name)
                              .Int(now_us)
                              .Run());
    Statement statement = db.Prepare("SELECT * FROM clients WHERE name = ?");
    TERSE_ASSIGN_OR_RETURN(client, run_store_internal::SelectClient(statement.Text(name), name));
    return absl::OkStatus();
  }));
  return client;
}

absl::StatusOr<ClientRecord> SqlRunStore::ClientNamed(const std::string& name) {
  ClientRecord record;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement statement = db.Prepare("SELECT * FROM clients WHERE name = ?");
    TERSE_ASSIGN_OR_RETURN(record, run_store_internal::SelectClient(statement.Text(name),
                                                                    absl::StrCat("there is no client '", name, "'")));
    return absl::OkStatus();
  }));
  return record;
}

absl::Status SqlRunStore::RecordNotApplied(int64_t client) {
  return Write([&](SqlDb& db) {
    return db.Prepare("UPDATE clients SET updates_not_applied = updates_not_applied + 1 WHERE id = ?")
        .Int(client)
        .RunForOne(absl::StrCat("there is no client ", client));
  });
}

absl::StatusOr<ClientRecord> SqlRunStore::RecordFailure(int64_t client) {
  ClientRecord record;
  TERSE_RETURN_IF_ERROR(Write([&](SqlDb& db) -> absl::Status {
    Statement statement = db.Prepare(
        "UPDATE clients SET failures = failures + 1, reliability = 0.9 * reliability WHERE id = ? RETURNING *");
    TERSE_ASSIGN_OR_RETURN(
        record, run_store_internal::SelectClient(statement.Int(client), absl::StrCat("there is no client ", client)));
    return absl::OkStatus();
  }));
  return record;
}

absl::Status SqlRunStore::SetAside(int64_t client, int64_t until_us, const std::string& reason) {
  const bool readmitted = until_us == 0;
  EventRecord event;
  event.time_us = run_store_internal::NowUs();
  event.kind = readmitted ? event::kClientReadmitted : event::kClientSetAside;
  event.client = client;
  event.detail = reason;
  return Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE clients SET set_aside_until_us = ?1, set_aside_reason = ?2, "
                                     "failures = CASE WHEN ?1 = 0 THEN 0 ELSE failures END WHERE id = ?3")
                              .Int(until_us)
                              .Text(readmitted ? "" : reason)
                              .Int(client)
                              .RunForOne(absl::StrCat("there is no client ", client)));
    return run_store_internal::InsertEvent(db, event);
  });
}

absl::Status SqlRunStore::SetSamples(int64_t client, int64_t samples) {
  return Write([&](SqlDb& db) {
    return db.Prepare("UPDATE clients SET samples = ? WHERE id = ?")
        .Int(samples)
        .Int(client)
        .RunForOne(absl::StrCat("there is no client ", client));
  });
}

absl::Status SqlRunStore::SetBelow(const BelowRecord& below) {
  const BelowFacts& facts = below.facts;
  return Write([&](SqlDb& db) {
    return db
        .Prepare(
            "INSERT INTO below (client, clients, payload_up, wire_up, payload_down, wire_down) VALUES (?1, ?2, ?3, "
            "?4, ?5, ?6) ON CONFLICT (client) DO UPDATE SET clients = excluded.clients, payload_up = "
            "excluded.payload_up, wire_up = excluded.wire_up, payload_down = excluded.payload_down, wire_down = "
            "excluded.wire_down")
        .Int(below.client)
        .Int(facts.clients)
        .Int(facts.payload_bytes_up)
        .Int(facts.wire_bytes_up)
        .Int(facts.payload_bytes_down)
        .Int(facts.wire_bytes_down)
        .Run();
  });
}

absl::StatusOr<std::vector<BelowRecord>> SqlRunStore::Below() {
  std::vector<BelowRecord> all;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement rows =
        db.Prepare("SELECT client, clients, payload_up, wire_up, payload_down, wire_down FROM below ORDER BY client");
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      all.push_back({rows.GetInt(0), {rows.GetInt(1), rows.GetInt(2), rows.GetInt(3), rows.GetInt(4), rows.GetInt(5)}});
    }
  }));
  return all;
}

}  // namespace terse
