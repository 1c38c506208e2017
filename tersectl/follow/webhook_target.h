// Calls a server of the user's own when something happens to a run that somebody should hear of.
#ifndef TERSE_TERSECTL_FOLLOW_WEBHOOK_TARGET_H_
#define TERSE_TERSECTL_FOLLOW_WEBHOOK_TARGET_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tersectl/follow/target.h"

namespace terse {

struct WebhookOptions {
  std::string url;     // http:// or https://
  std::string secret;  // signs the requests, unless it is empty
  std::string state;   // the folder of the position files
  absl::Duration lost_after = absl::Seconds(60);
  std::string coordinator;        // its address, to which the positions belong
  std::function<bool()> give_up;  // HttpClient::Options::give_up
};

// Posts an object with event, run, lineage, round, client, detail, time and id (docs/FOLLOW.md) for each of these
// events:
//
//   run_ended, run_stopped         all rounds are done; an operator or an error ended it before
//   run_deleted                    the coordinator has the run no more, also when that happened while nobody followed
//   run_suspended, run_recovered   its disk is in trouble; it is served again
//   run_down                       it cannot go on without repair
//   run_paused                     by an operator, or because round after round gave no model
//   round_aborted
//   client_lost                    a client's connection ended while the run went on, and for `lost_after`, in which
//                                  the coordinator was there, it did not come back
//
// Each is sent until an answer of 200 to 299 comes, in the order in which they happened, so at least once: `id` is the
// same each time. STATE/webhook-URL-LINEAGE.json (URL hashed) has the position. Without one, events before the start of
// this process are not sent, but those of a run that is new are.
std::unique_ptr<FollowTarget> MakeWebhookTarget(WebhookOptions options);

// "sha256=" and the HMAC-SHA256 of `body` in lower-case hexadecimal digits.
std::string WebhookSignature(absl::string_view secret, absl::string_view body);

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_WEBHOOK_TARGET_H_
