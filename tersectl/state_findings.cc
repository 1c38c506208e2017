// The checks of `tersectl doctor --state`.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tersectl/doctor_state.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr absl::string_view kSeparator = "; ";

std::string RoundText(const RunExamination& run) {
  if (!run.round_state.has_value()) return "no round yet";
  const std::string text = absl::StrCat("round ", run.round, " ", RoundStateName(*run.round_state));
  // The updates of a closed round are in the coordinator's memory alone.
  if (*run.round_state != RoundState::kClosed) return text;
  if (run.run.has_value() && !run.run->relay.empty()) {
    return absl::StrCat(text, " and not committed: unless the relay runs, its next start settles it");
  }
  return absl::StrCat(text, " and not committed: unless the coordinator runs, its next start aborts it");
}

Finding CheckRunState(const std::string& check, const RunExamination& run) {
  if (!run.run.has_value()) {
    return {check, Health::kWarning, "it holds no run yet: its coordinator stopped while making it",
            "start that again with its run file, or remove the directory"};
  }
  return {check, Health::kOk,
          absl::StrCat(RunStateName(run.run->state), ", version ", run.head.version, ", ", RoundText(run), ", ",
                       run.clients, " clients, lineage ", run.run->lineage.ToHex()),
          ""};
}

Finding CheckDatabase(const std::string& check, const RunExamination& run) {
  if (!run.database.ok()) return FindingOf(check, run.database, Health::kFailure);
  const std::string migration = run.schema_version == run.next_schema_version
                                    ? ""
                                    : absl::StrCat(", which its next start brings to ", run.next_schema_version);
  return {check, Health::kOk,
          absl::StrCat(BytesText(static_cast<uint64_t>(run.database_bytes)), ", whole, schema version ",
                       run.schema_version, migration),
          ""};
}

void CheckCheckpoints(const std::string& check, const RunExamination& run, std::vector<Finding>* findings) {
  int64_t whole = 0;
  for (const FileExamination& checkpoint : run.checkpoints) whole += checkpoint.status.ok() ? 1 : 0;
  for (const FileExamination& checkpoint : run.checkpoints) {
    if (checkpoint.status.ok()) continue;
    Finding finding = FindingOf(check, checkpoint.status, whole > 0 ? Health::kWarning : Health::kFailure);
    // Without a whole one, the database's finding says what to do.
    finding.remedy = whole > 0 ? "nothing: a whole one takes its place, and the next one replaces it" : "see above";
    findings->push_back(std::move(finding));
  }
  if (whole == 0) return;
  const auto newest = std::find_if(run.checkpoints.begin(), run.checkpoints.end(),
                                   [](const FileExamination& checkpoint) { return checkpoint.status.ok(); });
  findings->push_back({check, Health::kOk,
                       absl::StrCat(whole, " whole, the newest ", newest->name, " with ",
                                    BytesText(static_cast<uint64_t>(newest->bytes))),
                       ""});
}

void CheckSegments(const std::string& check, const RunExamination& run, std::vector<Finding>* findings) {
  int64_t whole = 0, bytes = 0;
  for (const FileExamination& segment : run.segments) {
    if (!segment.status.ok()) findings->push_back(FindingOf(check, segment.status, Health::kFailure));
    whole += segment.status.ok() ? 1 : 0;
    bytes += segment.status.ok() ? segment.bytes : 0;
  }
  if (whole == 0) return;
  findings->push_back({check, Health::kOk,
                       absl::StrCat(whole, " whole, with ", BytesText(static_cast<uint64_t>(bytes)), " of messages"),
                       ""});
}

Finding CheckPending(const ClientExamination& client, bool held) {
  if (client.dirty && !held) {
    return {"residual", Health::kWarning, "it was in the memory of a process that is gone",
            "nothing: the next start begins with a zero one, which is counted"};
  }
  if (client.dirty) return {"residual", Health::kOk, "in the memory of the process that runs", ""};
  if (!client.sealed.has_value()) return {"update", Health::kOk, "none waits for its verdict", ""};
  return {"update", Health::kOk,
          absl::StrCat("sealed for round ", client.sealed->round, " on version ", client.sealed->base_version,
                       ": it waits for its verdict and is sent again until then"),
          ""};
}

// The updates that a client left behind when it moved to another coordinator of its run.
Finding CheckParted(const std::vector<PartedLineage>& parted) {
  int64_t updates = 0;
  for (const PartedLineage& one : parted) updates += one.sealed.has_value() ? 1 : 0;
  return {"left behind", Health::kOk,
          absl::StrCat("the client has left ", parted.size(), parted.size() == 1 ? " lineage" : " lineages",
                       " of its run, and keeps ", updates, updates == 1 ? " update" : " updates",
                       " until it hears the verdict there"),
          ""};
}

}  // namespace

Finding FindingOf(const std::string& check, const absl::Status& status, Health health) {
  const absl::string_view message = status.message();
  const size_t end = message.find(kSeparator);
  if (end != absl::string_view::npos) {
    return {check, health, std::string(message.substr(0, end)), std::string(message.substr(end + kSeparator.size()))};
  }
  return {check, health, std::string(message),
          absl::IsPermissionDenied(status) ? "ask as the user of its daemon, or as root" : "check the disk"};
}

Finding CheckRoom(uint64_t free, uint64_t size, uint64_t next, const std::string& what, const std::string& directory) {
  const std::string detail = absl::StrCat(BytesText(free), " of ", BytesText(size), " free for ", directory,
                                          "; the next ", what, " takes ", BytesText(next));
  if (free / 2 >= next) return {"disk", Health::kOk, detail, ""};
  return {"disk", free < next ? Health::kFailure : Health::kWarning, detail, "make room there"};
}

std::vector<Finding> CheckRunFiles(const std::string& name, const RunExamination& run) {
  const std::string check = name.empty() ? "run" : absl::StrCat("run ", name);
  std::vector<Finding> findings;
  if (run.database.ok()) findings.push_back(CheckRunState(check, run));
  findings.push_back(CheckDatabase(absl::StrCat(check, ": database"), run));
  CheckCheckpoints(absl::StrCat(check, ": checkpoints"), run, &findings);
  CheckSegments(absl::StrCat(check, ": segments"), run, &findings);
  return findings;
}

std::vector<Finding> CheckClientFiles(const ClientExamination& client, bool held) {
  if (!client.manifest.ok()) return {FindingOf("manifest", client.manifest, Health::kFailure)};
  if (client.lineage.IsZero()) return {{"manifest", Health::kOk, "none: the client has joined no run yet", ""}};
  std::vector<Finding> findings = {
      {"manifest", Health::kOk,
       absl::StrCat("generation ", client.generation, ", lineage ", client.lineage.ToHex(),
                    client.family == client.lineage ? "" : absl::StrCat(" of the run ", client.family.ToHex())),
       ""},
      CheckPending(client, held)};
  if (!client.parted.empty()) findings.push_back(CheckParted(client.parted));
  uint64_t bytes = 0;
  bool is_whole = true;
  for (const FileExamination& blob : client.blobs) {
    bytes += static_cast<uint64_t>(blob.bytes);
    is_whole = is_whole && blob.status.ok();
    if (!blob.status.ok()) findings.push_back(FindingOf(blob.name, blob.status, Health::kFailure));
  }
  if (is_whole) {
    findings.push_back(
        {"files", Health::kOk, absl::StrCat(client.blobs.size(), " with ", BytesText(bytes), ", all whole"), ""});
  }
  if (!client.model.has_value()) return findings;
  findings.push_back(
      client.model->status.ok()
          ? Finding{"cached model", Health::kOk, BytesText(static_cast<uint64_t>(client.model->bytes)), ""}
          : Finding{"cached model", Health::kWarning, absl::StrCat("it ", client.model->status.message()),
                    "nothing: the client fetches the model again"});
  return findings;
}

}  // namespace terse
