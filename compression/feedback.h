// A feedback is the memory of a client between rounds: it holds the training that has not come into the model yet.
// Every feedback turns the new delta and its state into the update that is encoded, and takes out of the state what an
// applied message carried. The table is feedback_table.h; one feedback, one file pair.
#ifndef TERSE_COMPRESSION_FEEDBACK_H_
#define TERSE_COMPRESSION_FEEDBACK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/rate_schedule.h"

namespace terse {

// One per client and run. Not thread-safe.
//
//   Compress(delta)   dense = what the state and the delta make; returns the message; the update is now pending
//   Settle(applied)   APPLIED: dense -= what the message carried;  NOT_APPLIED: dense stays, the work folds forward
//                     (unless folds_forward() is false: it is dropped then)
//
// A pending update must be settled before the next Compress. (dense, the message that was settled last) is all that a
// client must store: Restore continues from it.
//
// The memory of the message that was settled last is kept for the next one: fresh memory takes the system several times
// as long as writing the message. So between rounds a client has that much memory more, which is nothing with a sparse
// codec, and with `dense` four bytes a parameter.
//
// Memory is for parameters. The delta of a buffer (core/layout.h) is handed to the codec as it is, and once its update
// is settled the state is zero there, whatever the verdict: running statistics are a state, so those of an update that
// was not applied are out of date, and would be counted twice if they joined the next; a variance could become
// negative.
class Feedback {
 public:
  virtual ~Feedback() = default;

  // The row of the feedback table.
  virtual absl::string_view name() const = 0;

  // Whether Observe is of use. Without it, such a feedback cannot do what it is for.
  virtual bool observes() const { return false; }

  // Tells what the next Compress is given as delta, and the weights from which it was trained, each of layout().size()
  // elements. Looks at parameters only.
  virtual void Observe(absl::Span<const float> /*weights*/, absl::Span<const float> /*delta*/) {}

  // Observations returns what was observed until now, to be stored beside dense(), and an equal feedback goes on from
  // it with RestoreObservations. DATA_LOSS for other bytes, and no change.
  virtual std::string Observations() const { return ""; }
  virtual absl::Status RestoreObservations(absl::string_view /*bytes*/) { return absl::OkStatus(); }

  // Encodes with `key` and the codec of `choice` (EncodeOptions). *delta has layout().size() elements; afterwards it
  // has as many unspecified ones: its memory is exchanged with the state's, so that nothing is copied.
  // FAILED_PRECONDITION while an update is pending; INVALID_ARGUMENT from the codec, in which case the state is as it
  // was before the call and the delta is not in it.
  absl::StatusOr<std::string> Compress(std::vector<float>* delta, const CodecKey& key, int64_t choice = 0);

  // FAILED_PRECONDITION when nothing is pending.
  absl::Status Settle(bool applied);

  // Undoes Compress, which has left `delta` as it is: the state is as before it, bit for bit, and nothing is pending. A
  // rate schedule keeps what it has observed. FAILED_PRECONDITION when nothing is pending.
  absl::Status TakeBack(std::vector<float>* delta);

  // The memory in which Compress, after which `delta` is as it left it, has kept the state before it until the next
  // Compress. Who takes the memory away keeps that state; TakeBack is not possible then.
  virtual std::vector<float>* StateBefore(std::vector<float>* delta) { return delta; }

  // Takes up again an update of this feedback, or of an equal one, that was settled as APPLIED before its verdict was
  // known: what it carried is in the state again, as far as the message tells, and it is pending. FAILED_PRECONDITION
  // while an update is pending; DATA_LOSS for a message that does not decode, and no change.
  absl::Status Rejoin(absl::string_view message);

  // Zeroes the state and forgets a pending update. Returns the L2 norm of what is lost, for the report.
  double Reset();

  // Continues from stored state: `dense` less what `minus` carried is the state. `minus` may be empty. If `pending` is
  // not empty it is the sealed message whose verdict is outstanding, and `dense` is the state it was made from (then
  // `minus` is empty); without one, what `dense` has for buffers is dropped. DATA_LOSS when sizes or messages do not
  // fit.
  absl::Status Restore(absl::Span<const float> dense, absl::string_view minus, absl::string_view pending);

  // Whether nothing is left of an update that was applied, so that between updates that all are there is no state.
  virtual bool forgets() const { return false; }
  // Whether an update that was not applied joins the next one.
  virtual bool folds_forward() const { return true; }

  // The state: a whole number of vectors of layout().size() floats, the first of which is what was encoded last while
  // an update is pending, and otherwise what waits to be sent.
  absl::Span<const float> dense() const { return dense_; }
  bool pending() const { return !pending_.empty(); }
  const std::string& pending_message() const { return pending_; }
  // L2 norm of the first vector of dense().
  double Norm() const;

 protected:
  // `codec` must outlive this object. The state starts at zero; `vectors` >= 1; 0 <= decay <= 1; `schedule` may be
  // null.
  Feedback(const Codec* codec, int vectors, double decay, std::unique_ptr<RateSchedule> schedule);

  // Makes the new state, in *delta or in memory of its own, exchanges that with dense_, so that StateBefore has what
  // dense_ was, and encodes its first vector, which has the delta's own values for buffers, where dense_ is zero in all
  // vectors. After an error dense_ must be as before. The default, for a state of one vector: decay * dense + delta, in
  // float32.
  virtual absl::StatusOr<std::string> Accumulate(std::vector<float>* delta, const EncodeOptions& options);
  // For the default of Accumulate; 0 <= decay <= 1.
  void set_decay(double decay) { decay_ = static_cast<float>(decay); }

  // Takes out of dense_ what an applied message carried of the parameters; what it leaves for buffers is dropped.
  // Deterministic: Restore repeats it. An error only for a message that does not decode.
  virtual absl::Status Subtract(absl::string_view message) = 0;
  // Adds to dense_ what a message that decodes carried, which Subtract took out. The default adds it to the first
  // vector.
  virtual absl::Status AddBack(absl::string_view message);

  // Adds what a message that decodes carried, of the parameters at least, to the floats of `accumulator`, of which
  // there are size().
  absl::Status AddCarried(absl::string_view message, float sign, absl::Span<float> accumulator) const;

  const Codec& codec() const { return *codec_; }
  size_t size() const { return static_cast<size_t>(codec_->layout().size()); }
  // Elements of a vector before its buffers.
  size_t parameters() const { return static_cast<size_t>(codec_->layout().parameters()); }

  std::vector<float> dense_;

 private:
  // Sets the pending message, which is empty if there is none; `encoded` says whether scratch_ has just encoded it.
  void SetPending(std::string message, bool encoded);
  // Zeroes what dense_ has for buffers.
  void DropBuffers();
  // Takes an update out of dense_ whose verdict is known; `message` is empty unless it was applied.
  absl::Status TakeOut(absl::string_view message);

  const Codec* const codec_;
  float decay_;
  const std::unique_ptr<RateSchedule> schedule_;
  const std::unique_ptr<EncodeScratch> scratch_;
  bool encoded_pending_ = false;  // whether scratch_ was last used for the pending message
  std::vector<float> latest_;     // kept for codecs that use it
  std::string pending_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_FEEDBACK_H_
