// The language of the clients of a fuzzed run: its model, the codec of its updates and some messages.
#ifndef TERSE_TESTS_FUZZ_SESSION_LANGUAGE_H_
#define TERSE_TESTS_FUZZ_SESSION_LANGUAGE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

struct Language {
  CodecSpec spec;
  std::unique_ptr<const Codec> codec;
  std::map<std::string, std::unique_ptr<const Codec>> downstream_codecs;  // sbc, qsgd
  std::vector<float> initial_weights;
  // Good ones; the last is so large that two of it have no sum.
  std::vector<std::string> messages;

  const Layout& layout() const { return codec->layout(); }
  // Whether clients pack their updates. Then most of them are shorter so once a client has a history, and a history's
  // log outgrows its state within the rounds of a run.
  bool shared() const { return spec.positions == kSharedPositions; }
};

// Any number chooses one.
const Language& LanguageOf(size_t choice);

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_SESSION_LANGUAGE_H_
