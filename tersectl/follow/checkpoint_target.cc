#include "tersectl/follow/checkpoint_target.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/status.h"
#include "tersectl/export.h"

namespace terse {
namespace {

constexpr char kSuffix[] = ".safetensors";
constexpr size_t kFolderDigits = 8;

// The version of a checkpoint's name below the folder; nullopt for a file of another name.
absl::optional<uint64_t> VersionOf(absl::string_view name, absl::string_view folder) {
  uint64_t version = 0;
  const bool is_checkpoint = absl::ConsumePrefix(&name, absl::StrCat(folder, "/")) &&
                             absl::ConsumeSuffix(&name, kSuffix) && absl::SimpleAtoi(name, &version);
  return is_checkpoint ? absl::make_optional(version) : absl::nullopt;
}

class CheckpointTracker : public RunTracker {
 public:
  CheckpointTracker(const v1::Status& run, std::string folder, std::vector<uint64_t> stored, ObjectStore* store,
                    const CheckpointOptions* options)
      : run_(run.run()),
        lineage_(run.lineage()),
        parameters_(run.parameters()),
        folder_(std::move(folder)),
        stored_(std::move(stored)),
        store_(store),
        options_(options) {}

  void TakeRun(const v1::Run& run, absl::Time) override { version_ = run.version(); }
  void TakeEnd(const RunEnd& end) override { at_end_ = end.state != "deleted"; }

  absl::Status Deliver() override {
    const uint64_t newest = stored_.empty() ? 0 : stored_.back();
    const bool is_due = version_ >= newest + options_->every || (at_end_ && version_ > newest);
    if (is_due) TERSE_RETURN_IF_ERROR(Store());
    return RemoveOld();
  }

 private:
  absl::Status Store() {
    TERSE_ASSIGN_OR_RETURN(AdminClient client, options_->connect(run_));
    absl::optional<StopSignal::Cancels> cancels;
    if (options_->stop != nullptr) cancels.emplace(options_->stop, &client);
    const absl::StatusOr<v1::Status> now = client.GetStatus();
    if (absl::IsNotFound(now.status()) || (now.ok() && now->lineage() != lineage_)) {
      // The run is gone, and another one may have its name: nothing of it can be stored any more.
      version_ = 0;
      at_end_ = false;
      return absl::OkStatus();
    }
    TERSE_RETURN_IF_ERROR(now.status());
    TERSE_ASSIGN_OR_RETURN(const AdminClient::ExportedModel model,
                           client.Export(v1::ExportRequest::FORMAT_SAFETENSORS, MostModelBytes(parameters_)));
    if (model.version == 0) {
      return absl::FailedPreconditionError(
          "the coordinator does not say which version a model has; update it before its checkpoints are stored");
    }
    TERSE_RETURN_IF_ERROR(PutBytes(*store_, NameOf(model.version), model.bytes));
    if (stored_.empty() || model.version > stored_.back()) stored_.push_back(model.version);
    return absl::OkStatus();
  }

  absl::Status RemoveOld() {
    while (options_->keep > 0 && static_cast<int64_t>(stored_.size()) > options_->keep) {
      TERSE_RETURN_IF_ERROR(store_->Remove(NameOf(stored_.front())));
      stored_.erase(stored_.begin());
    }
    return absl::OkStatus();
  }

  std::string NameOf(uint64_t version) const { return absl::StrFormat("%s/%010d%s", folder_, version, kSuffix); }

  const std::string run_;
  const std::string lineage_;
  const uint64_t parameters_;
  const std::string folder_;
  std::vector<uint64_t> stored_;  // versions, increasing
  ObjectStore* const store_;
  const CheckpointOptions* const options_;
  uint64_t version_ = 0;
  bool at_end_ = false;
};

class CheckpointTarget : public FollowTarget {
 public:
  CheckpointTarget(std::unique_ptr<ObjectStore> store, CheckpointOptions options)
      : store_(std::move(store)), options_(std::move(options)) {}

  std::string name() const override { return absl::StrCat("checkpoints in ", store_->address()); }

  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool) override {
    const std::string folder =
        absl::StrCat(run.run(), "-", absl::BytesToHexString(run.lineage()).substr(0, kFolderDigits));
    TERSE_ASSIGN_OR_RETURN(const std::vector<ObjectInfo> objects, store_->List(folder));
    std::vector<uint64_t> stored;
    for (const ObjectInfo& object : objects) {
      if (const auto version = VersionOf(object.name, folder); version.has_value()) stored.push_back(*version);
    }
    std::sort(stored.begin(), stored.end());
    return std::make_unique<CheckpointTracker>(run, folder, std::move(stored), store_.get(), &options_);
  }

 private:
  const std::unique_ptr<ObjectStore> store_;
  const CheckpointOptions options_;
};

}  // namespace

std::unique_ptr<FollowTarget> MakeCheckpointTarget(std::unique_ptr<ObjectStore> store, CheckpointOptions options) {
  return std::make_unique<CheckpointTarget>(std::move(store), std::move(options));
}

}  // namespace terse
