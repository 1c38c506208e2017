// `tersectl export`: the model and the report of a run as files.
#ifndef TERSE_TERSECTL_EXPORT_H_
#define TERSE_TERSECTL_EXPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tersectl/admin_client.h"
#include "tersectl/report.h"

namespace terse {

enum class ExportFormat { kTorchScript, kState, kNpz, kTensorBoard, kAll };

// More bytes than any file has that holds a model of so many parameters: each as float32 once, and names, shapes, code
// and padding beside it.
inline uint64_t MostModelBytes(uint64_t parameters) { return 8 * parameters + (uint64_t{64} << 20); }

struct ExportResult {
  Summary summary;
  std::vector<std::string> files;  // paths that were written, in this order
};

// Writes model.pt (TorchScript), model.safetensors, model.npz and tensorboard/events.out.tfevents.terse, or one of
// them, with a model of a text vocabulary.json, and in any case rounds.csv, summary.json, config.json and
// accuracy_vs_bytes.svg into `directory`, which is made when it is not there. Each file is replaced atomically;
// everything is fetched before the first is written. Returns the coordinator's errors and those of the file system.
absl::StatusOr<ExportResult> ExportRun(AdminClient& client, const std::string& directory, ExportFormat format);

}  // namespace terse

#endif  // TERSE_TERSECTL_EXPORT_H_
