#include "bench/paper/thin_link.h"

#include <algorithm>
#include <variant>

namespace terse {

void ThinLink::Carry(size_t bytes, absl::Time* free) const {
  *free = std::max(time_.now(), *free) + absl::Seconds(static_cast<double>(bytes) / bytes_per_second_);
  time_.sleep(*free - time_.now());
}

absl::Status ThinLink::Send(const FromClient& message) {
  if (const auto* update = std::get_if<Update>(&message)) Carry(update->message.size(), &up_free_);
  return link_->Send(message);
}

absl::StatusOr<FromServer> ThinLink::Receive() {
  absl::StatusOr<FromServer> message = link_->Receive();
  if (!message.ok()) return message;
  if (const auto* downstream = std::get_if<Downstream>(&*message)) Carry(downstream->message->size(), &down_free_);
  return message;
}

absl::StatusOr<std::string> ThinLink::Carried(absl::StatusOr<std::string> file) {
  if (file.ok()) Carry(file->size(), &down_free_);
  return file;
}

absl::StatusOr<std::string> ThinLink::DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) {
  return Carried(link_->DownloadCheckpoint(lineage, version, max_bytes));
}

absl::StatusOr<std::string> ThinLink::DownloadModule(Id128 lineage, int64_t max_bytes) {
  return Carried(link_->DownloadModule(lineage, max_bytes));
}

}  // namespace terse
