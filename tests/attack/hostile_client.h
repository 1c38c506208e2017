// A client that breaks the rules: it has a certificate of the fleet, and says whatever a test tells it to.
#ifndef TERSE_TESTS_ATTACK_HOSTILE_CLIENT_H_
#define TERSE_TESTS_ATTACK_HOSTILE_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/session_messages.h"
#include "grpcpp/grpcpp.h"
#include "proto/session_wire.h"
#include "security/transport_options.h"
#include "terse/v1/fleet.grpc.pb.h"

namespace terse {

// How long a session may last, so that a test which waits in vain ends.
inline constexpr absl::Duration kHostilePatience = absl::Seconds(60);

// One Session stream. It reads only when the test asks for a message: whoever asks for none has stopped reading, and
// what the coordinator sends waits there. The object's end cancels the call. One thread at a time.
class HostileSession {
 public:
  // `layout` is the model's, and must outlive the session.
  HostileSession(v1::Fleet::Stub* stub, std::string name, const Layout& layout, absl::Duration patience);
  ~HostileSession() { Cancel(); }
  HostileSession(const HostileSession&) = delete;
  HostileSession& operator=(const HostileSession&) = delete;

  // Sends a message as it is. False once the call has ended, or is cut off because the coordinator stopped reading.
  bool Write(const v1::ClientMessage& message) { return stream_->Write(message); }
  // Sends what an honest client's library would make of it.
  bool Say(const FromClient& message);

  // Reads until a message of that kind comes. nullopt when the session ends before.
  template <typename T>
  absl::optional<T> Await() {
    while (const FromServer* message = Read()) {
      if (const T* wanted = std::get_if<T>(message)) return *wanted;
    }
    return absl::nullopt;
  }
  // The next message, which stays in heard(); nullptr when the session has ended.
  const FromServer* Read();
  // Everything that was read, oldest first.
  const std::vector<FromServer>& heard() const { return heard_; }
  // Reads to the session's end, and returns how it ended.
  grpc::Status End();
  // The reason of the refusal that the session was ended with, after End; empty for none.
  std::string Refusal();
  void Cancel();

  // Checks in under the certificate's name, as a client without a past, and waits for the answer. False when it was
  // refused.
  bool CheckIn(const std::string& run = "");
  // The answer to CheckIn.
  const Welcome& welcome() const { return *welcome_; }
  // Says that it holds `version`; a `hash` of zero is that of version 0.
  bool SayReady(int64_t version = 0, Id128 hash = {}, int64_t samples = 1);
  // CheckIn, SayReady and all deltas up to the head as it was at the check-in. False when that fails.
  bool Join(const std::string& run = "");

  // The run's codec of updates, after CheckIn.
  const Codec& codec() const { return *codec_; }
  // A message of the run's codec with these values, which are finite; it fails the test otherwise.
  std::string Encode(absl::Span<const float> values, int64_t choice = 0) const;
  // `message` as an update of that round, with the id that an honest client would give it: its predecessor is
  // `last_applied`.
  Update MakeUpdate(int64_t round, std::string message) const;
  // As the client knows it from the verdicts that were read.
  Id128 last_applied() const { return last_applied_; }

 private:
  void Notice(const FromServer& message);

  grpc::ClientContext context_;
  const std::string name_;
  const Layout& layout_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessages>> stream_;
  ServerMessageReader reader_;
  v1::ServerMessages incoming_;
  int next_ = 0;  // of the messages of incoming_
  std::vector<FromServer> heard_;
  absl::optional<grpc::Status> ended_;
  absl::optional<Welcome> welcome_;
  std::unique_ptr<const Codec> codec_;
  Id128 last_applied_;
  int64_t version_ = 0;
};

// A connection with a client's certificate. Thread-safe; the sessions that it opens are not.
class HostileClient {
 public:
  // `name` is the certificate's. `layout` is the model's, and must outlive the client.
  HostileClient(const std::string& coordinator, const TransportOptions& transport, std::string name,
                const Layout& layout);

  // Opens a session on which nothing was said yet. The client must outlive it.
  std::unique_ptr<HostileSession> Open(absl::Duration patience = kHostilePatience) const;
  // Asks for the checkpoint of a version: the whole file in `bytes`, and how the call ended.
  grpc::Status DownloadCheckpoint(Id128 lineage, int64_t version, std::string* bytes) const;
  // The same for the module's file.
  grpc::Status DownloadModule(Id128 lineage, std::string* bytes) const;

  v1::Fleet::Stub* stub() const { return stub_.get(); }
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
  const Layout& layout_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
};

}  // namespace terse

#endif  // TERSE_TESTS_ATTACK_HOSTILE_CLIENT_H_
