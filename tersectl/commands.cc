#include "tersectl/commands.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "tersectl/lists.h"
#include "tersectl/print.h"
#include "tersectl/report.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

// The columns of `rounds --why`.
const char* const kPlanColumns[] = {"round", "state", "local_steps", "coding", "train_loss", "payload_up", "why"};

// Prints the chosen rows as JSON, for ShowList.
template <typename Row>
auto AsJson(const Terminal& terminal) {
  return [&terminal](const std::vector<Row>& rows) { PrintJsonList(rows, terminal); };
}

// Loss stands beside accuracy where a run has no accuracy, as in regression.
List<v1::Run> RunListFor(const std::vector<v1::Run>& runs) {
  List<v1::Run> list = RunList();
  const bool has_loss_alone =
      absl::c_any_of(runs, [](const v1::Run& run) { return run.has_test_loss() && !run.has_accuracy(); });
  for (ListColumn<v1::Run>& column : list.columns) {
    if (column.name == "loss" && has_loss_alone) column.use = ColumnUse::kUsual;
  }
  return list;
}

}  // namespace

absl::Status ShowRuns(AdminClient& client, const RunsOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunsReply reply, client.ListRuns());
  const std::vector<v1::Run> runs(reply.runs().begin(), reply.runs().end());
  const List<v1::Run> list = RunListFor(runs);
  if (!options.names || options.json) {
    return ShowList(list, options.list, options.json, runs, terminal, AsJson<v1::Run>(terminal));
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Run> chosen, list.Choose(options.list, runs));
  for (const v1::Run& run : chosen) *terminal.out << PlainText(run.name()) << "\n";
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
  const List<v1::Round> list = RoundList();
  ListOptions chosen = options.list;
  if (options.why && chosen.columns.empty()) chosen.columns.assign(std::begin(kPlanColumns), std::end(kPlanColumns));
  if (!options.csv) return ShowList(list, chosen, options.json, rounds, terminal, AsJson<v1::Round>(terminal));
  TERSE_ASSIGN_OR_RETURN(rounds, list.Choose(chosen, rounds));
  *terminal.out << PlainLines(RoundsCsv(rounds));
  return absl::OkStatus();
}

absl::Status ShowClients(AdminClient& client, const ClientsOptions& options, const Terminal& terminal) {
  if (!options.set_aside.empty() || !options.readmit.empty()) return ChangeClient(client, options, terminal);
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Client> clients, client.ListClients());
  return ShowList(ClientList(), options.list, options.json, clients, terminal, AsJson<v1::Client>(terminal));
}

absl::Status ShowLedger(AdminClient& client, const LedgerOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::LedgerRow> rows, client.ListLedger(options.first, options.last));
  return ShowList(LedgerList(), options.list, options.json, rows, terminal, AsJson<v1::LedgerRow>(terminal));
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
