#include "tersectl/commands.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "tersectl/print.h"
#include "tersectl/report.h"
#include "tersectl/text_table.h"
#include "tersectl/watch.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

std::string Seconds(int64_t from_us, int64_t to_us) {
  return to_us <= from_us ? "-" : DurationText(static_cast<double>(to_us - from_us) / 1e6);
}

std::string SetAsideText(const v1::Client& client) {
  if (client.set_aside_until_us() == 0) return "";
  return absl::StrCat("until ", TimeText(client.set_aside_until_us()), ": ", client.set_aside_reason());
}

// Clients report it with their updates.
std::string TrainLoss(const v1::Round& round) { return round.has_train_loss() ? DecimalText(round.train_loss()) : ""; }

void PrintPlans(const std::vector<v1::Round>& rounds, const Terminal& terminal) {
  TextTable table({{"round", true},
                   {"state"},
                   {"local steps", true},
                   {"coding", true},
                   {"train loss", true},
                   {"up", true},
                   {"why"}});
  for (const v1::Round& round : rounds) {
    const bool planned = round.has_local_steps();
    table.AddRow({absl::StrCat(round.id()), round.state(), planned ? absl::StrCat(round.local_steps()) : "-",
                  planned ? absl::StrCat(round.choice()) : "-", TrainLoss(round), BytesText(round.payload_bytes_up()),
                  planned ? round.why() : "as in the run file"});
  }
  *terminal.out << table.Render(terminal.color);
}

void PrintRoundTable(const std::vector<v1::Round>& rounds, const Terminal& terminal) {
  TextTable table({{"round", true},
                   {"state"},
                   {"updates", true},
                   {"train loss", true},
                   {"accuracy", true},
                   {"test loss", true},
                   {"up", true},
                   {"down", true},
                   {"compression", true},
                   {"both ways", true},
                   {"training", true},
                   {"time", true}});
  for (const v1::Round& round : rounds) {
    table.AddRow({absl::StrCat(round.id()), round.state(), round.has_updates() ? absl::StrCat(round.updates()) : "",
                  TrainLoss(round), round.has_accuracy() ? DecimalText(round.accuracy()) : "",
                  round.has_test_loss() ? DecimalText(round.test_loss()) : "", BytesText(round.wire_bytes_up()),
                  BytesText(round.wire_bytes_down()), CompressionUpText(round), CompressionBothText(round),
                  Seconds(0, round.train_us_max()), Seconds(round.opened_us(), round.committed_us())});
  }
  *terminal.out << table.Render(terminal.color);
}

}  // namespace

absl::Status ShowRuns(AdminClient& client, const RunsOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunsReply reply, client.ListRuns());
  if (options.json) {
    PrintJsonList(std::vector<v1::Run>(reply.runs().begin(), reply.runs().end()), terminal);
    return absl::OkStatus();
  }
  if (options.names) {
    for (const v1::Run& run : reply.runs()) *terminal.out << PlainText(run.name()) << "\n";
    return absl::OkStatus();
  }
  TextTable table({{"run"}, {"state"}, {"rounds", true}, {"clients", true}, {"phase"}});
  for (const v1::Run& run : reply.runs()) {
    table.AddRow({run.name(), run.state(), absl::StrCat(run.version(), "/", run.rounds_total()),
                  absl::StrCat(run.clients_connected()), run.phase()});
  }
  *terminal.out << table.Render(terminal.color);
  return absl::OkStatus();
}

absl::Status ShowStatus(AdminClient& client, const SteerOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
  if (options.json) {
    PrintJson(ToJson(status), terminal);
    return absl::OkStatus();
  }
  TextTable table({{absl::StrCat("run ", status.run())}, {status.state()}});
  if (!status.reason().empty()) table.AddRow({"reason", status.reason()});
  table.AddRow({"phase", status.phase()});
  table.AddRow({"rounds committed", absl::StrCat(status.version(), " of ", status.rounds_total())});
  if (const int64_t limit = status.config().limits().iterations(); limit > 0) {
    table.AddRow({"iterations", absl::StrCat(status.iterations(), " of ", limit)});
  }
  table.AddRow({"newest round", absl::StrCat(status.round())});
  table.AddRow({"clients", absl::StrCat(status.clients_connected(), " connected, ", status.clients_wanted(),
                                        " wanted, ", status.clients_known(), " known")});
  table.AddRow({"codec", status.config().codec().name()});
  table.AddRow({"local steps", LocalStepsText(status.config())});
  table.AddRow({"parameters", absl::StrCat(status.parameters())});
  table.AddRow({"model hash", absl::BytesToHexString(status.model_hash())});
  table.AddRow({"lineage", absl::BytesToHexString(status.lineage())});
  table.AddRow({"created", TimeText(status.created_us())});
  table.AddRow({"program", status.program_version()});
  *terminal.out << table.Render(terminal.color);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FirstOfNewest(AdminClient& client, uint64_t first, uint64_t newest) {
  if (newest == 0) return first;
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
  return status.round() >= newest ? std::max(first, status.round() - newest + 1) : first;
}

absl::Status ShowRounds(AdminClient& client, const RoundsOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const uint64_t first, FirstOfNewest(client, options.first, options.newest));
  TERSE_ASSIGN_OR_RETURN(std::vector<v1::Round> rounds, client.ListRounds(first, options.last));
  if (options.newest > 0 && rounds.size() > options.newest) {
    rounds.erase(rounds.begin(), rounds.end() - static_cast<ptrdiff_t>(options.newest));
  }
  if (options.csv) {
    *terminal.out << PlainLines(RoundsCsv(rounds));
  } else if (options.json) {
    PrintJsonList(rounds, terminal);
  } else {
    options.why ? PrintPlans(rounds, terminal) : PrintRoundTable(rounds, terminal);
  }
  return absl::OkStatus();
}

absl::Status ShowClients(AdminClient& client, const ClientsOptions& options, const Terminal& terminal) {
  if (!options.set_aside.empty() || !options.readmit.empty()) return ChangeClient(client, options, terminal);
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Client> clients, client.ListClients());
  if (options.json) {
    PrintJsonList(clients, terminal);
    return absl::OkStatus();
  }
  TextTable table({{"client", true},
                   {"name"},
                   {"connected"},
                   {"state"},
                   {"version", true},
                   {"steps", true},
                   {"applied", true},
                   {"not applied", true},
                   {"resets", true},
                   {"samples", true},
                   {"reliability", true},
                   {"failures", true},
                   {"device"},
                   {"residual", true},
                   {"up", true},
                   {"down", true},
                   {"last seen"},
                   {"set aside"}});
  for (const v1::Client& row : clients) {
    // Where a client stands is known while it is here.
    const auto here = [&row](uint64_t value) { return row.connected() ? absl::StrCat(value) : ""; };
    table.AddRow({absl::StrCat(row.index()), row.name(), row.connected() ? "yes" : "no", row.state(),
                  here(row.version()), here(row.steps_done()), absl::StrCat(row.updates_applied()),
                  absl::StrCat(row.updates_not_applied()), absl::StrCat(row.resets()), absl::StrCat(row.samples()),
                  DecimalText(row.reliability()), absl::StrCat(row.failures()), row.has_device() ? row.device() : "-",
                  row.has_residual_norm() ? absl::StrFormat("%.2g", row.residual_norm()) : "-",
                  BytesText(row.wire_bytes_up()), BytesText(row.wire_bytes_down()), TimeText(row.last_seen_us()),
                  SetAsideText(row)});
  }
  *terminal.out << table.Render(terminal.color);
  return absl::OkStatus();
}

absl::Status ShowLedger(AdminClient& client, const LedgerOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::LedgerRow> rows, client.ListLedger(options.first, options.last));
  if (options.json) {
    PrintJsonList(rows, terminal);
    return absl::OkStatus();
  }
  TextTable table({{"round", true}, {"client"}, {"direction"}, {"dense", true}, {"payload", true}, {"wire", true}});
  for (const v1::LedgerRow& row : rows) {
    table.AddRow({absl::StrCat(row.round()), ClientText(row.client(), row.client_name()), row.direction(),
                  BytesText(row.dense_bytes()), BytesText(row.payload_bytes()), BytesText(row.wire_bytes())});
  }
  *terminal.out << table.Render(terminal.color);
  return absl::OkStatus();
}

absl::Status ShowSummary(AdminClient& client, const CommandOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, client.ListRounds(0, 0));
  const Summary summary = Summarize(status, rounds);
  if (options.json) {
    PrintJson(SummaryJson(summary), terminal);
  } else {
    *terminal.out << SummaryTable(summary, terminal.color);
  }
  return absl::OkStatus();
}

absl::Status ExportFiles(AdminClient& client, const ExportOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const ExportResult result, ExportRun(client, options.directory, options.format));
  if (options.json) {
    PrintJson(Json{{"files", result.files}, {"summary", SummaryJson(result.summary)}}, terminal);
    return absl::OkStatus();
  }
  *terminal.out << SummaryTable(result.summary, terminal.color) << "\n";
  for (const std::string& file : result.files) *terminal.out << file << "\n";
  return absl::OkStatus();
}

}  // namespace terse
