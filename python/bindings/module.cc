// The extension terse._codecs: what terse.codecs has of the compression library. Python's side
// (python/terse/_coding.py) hands over lists of arrays, one a tensor of the layout; users see none of this.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "compression/update_history.h"
#include "python/bindings/arrays.h"
#include "python/bindings/coder.h"
#include "python/bindings/errors.h"
#include "python/bindings/settings.h"

namespace terse {
namespace {

namespace nb = nanobind;

using SharedCoder = std::shared_ptr<const Coder>;
using Key = std::tuple<uint64_t, uint64_t, uint64_t>;

CodecKey KeyOf(const Key& key) { return {std::get<0>(key), std::get<1>(key), std::get<2>(key)}; }

absl::string_view ViewOf(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::bytes BytesOf(absl::string_view text) { return nb::bytes(text.data(), text.size()); }

// Runs `work` without the GIL.
template <typename Work>
auto WithoutGil(Work work) {
  const nb::gil_scoped_release released;
  return work();
}

// Runs `work` without the GIL and with the lock, which is taken without the GIL only, so that nobody waits for the two
// crosswise.
template <typename Work>
auto Locked(std::mutex* mutex, Work work) {
  return WithoutGil([&] {
    const std::lock_guard<std::mutex> lock(*mutex);
    return work();
  });
}

void Set(const char* name, nb::handle value, std::string* setting) {
  if (!nb::try_cast(value, *setting, false)) RaiseCodecError(absl::StrCat("codec.", name, " takes a string"));
}

void Set(const char* name, nb::handle value, int64_t* setting) {
  if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, *setting, false)) {
    RaiseCodecError(absl::StrCat("codec.", name, " takes a whole number"));
  }
}

void Set(const char* name, nb::handle value, double* setting) {
  if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, *setting, true)) {
    RaiseCodecError(absl::StrCat("codec.", name, " takes a number"));
  }
}

CodecSpec SpecOf(const std::string& codec, const nb::dict& settings) {
  CodecSpec spec;
  spec.name = codec;
  std::vector<std::string> names;
  ForEachSetting(spec, [&](const char* name, auto& member) {
    names.emplace_back(name);
    if (settings.contains(name)) Set(name, settings[name], &member);
  });
  for (const auto& [key, value] : settings) {
    const std::string name = nb::cast<std::string>(nb::str(key));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    RaiseCodecError(absl::StrCat("codec.", name, " is no setting; the settings are ", absl::StrJoin(names, ", ")));
  }
  return spec;
}

nb::dict DefaultSettings() {
  nb::dict defaults;
  const CodecSpec spec;
  ForEachSetting(spec, [&](const char* name, const auto& member) { defaults[name] = nb::cast(member); });
  return defaults;
}

// The rows of the codec table: names and the feedback that each has of its own.
std::vector<std::tuple<std::string, std::string>> Table() {
  std::vector<std::tuple<std::string, std::string>> rows;
  for (const std::string& name : CodecNames()) {
    CodecSpec spec;
    spec.name = name;
    rows.emplace_back(name, ValueOrRaise(DefaultFeedback(spec)));
  }
  return rows;
}

SharedCoder MakeCoder(const std::string& codec, const nb::dict& settings,
                      const std::vector<std::tuple<std::string, std::vector<int64_t>, bool>>& entries) {
  std::vector<Layout::Entry> layout;
  for (const auto& [name, shape, is_buffer] : entries) {
    layout.push_back({name, shape, is_buffer ? TensorKind::kBuffer : TensorKind::kParameter});
  }
  return ValueOrRaise(Coder::Create(SpecOf(codec, settings), layout));
}

nb::bytes Encode(const Coder& coder, const nb::sequence& update, const nb::object& residual, const Key& key) {
  const ReadArrays from(update, coder.layout(), "update");
  if (residual.is_none()) {
    return BytesOf(ValueOrRaise(WithoutGil([&] { return coder.Encode(from.tensors(), KeyOf(key)); })));
  }
  const WrittenArrays rest(nb::cast<nb::sequence>(residual), coder.layout(), "residual");
  return BytesOf(
      ValueOrRaise(WithoutGil([&] { return coder.EncodeWithResidual(from.tensors(), rest.tensors(), KeyOf(key)); })));
}

void Decode(const Coder& coder, const nb::bytes& message, const nb::sequence& out) {
  const WrittenArrays to(out, coder.layout(), "output");
  RaiseIfMalformed(WithoutGil([&] { return coder.Decode(ViewOf(message), to.tensors()); }));
}

void AddDecoded(const Coder& coder, const nb::bytes& message, float sign, const nb::sequence& out) {
  const WrittenArrays to(out, coder.layout(), "output");
  RaiseIfMalformed(WithoutGil([&] { return coder.AddDecoded(ViewOf(message), sign, to.tensors()); }));
}

int64_t CostBits(const Coder& coder, const nb::sequence& update, const Key& key) {
  const ReadArrays from(update, coder.layout(), "update");
  return ValueOrRaise(WithoutGil([&] { return coder.CostBits(from.tensors(), KeyOf(key)); }));
}

// terse::Feedback for any number of threads, one after the other.
class Memory {
 public:
  explicit Memory(SharedCoder coder) : coder_(std::move(coder)) {
    feedback_ = ValueOrRaise(MakeFeedback(coder_->spec(), &coder_->codec()));
    if (feedback_->observes()) {
      RaiseIfError(absl::InvalidArgumentError(
          absl::StrCat("codec.feedback = '", feedback_->name(),
                       "' observes the weights that updates are trained from, which only a client of a fleet has; "
                       "use 'error_feedback' with a decay")));
    }
  }

  nb::bytes Compress(const nb::sequence& update, const Key& key) {
    const ReadArrays from(update, coder_->layout(), "update");
    return BytesOf(ValueOrRaise(Locked(&mutex_, [&] {
      delta_.resize(coder_->layout().size());
      coder_->Gather(from.tensors(), absl::MakeSpan(delta_));
      return feedback_->Compress(&delta_, KeyOf(key));
    })));
  }

  void Settle(bool applied) {
    RaiseIfError(Locked(&mutex_, [&] { return feedback_->Settle(applied); }));
  }

  double Reset() {
    return Locked(&mutex_, [&] { return feedback_->Reset(); });
  }

  double Norm() {
    return Locked(&mutex_, [&] { return feedback_->Norm(); });
  }

  nb::object Pending() {
    std::string message = Locked(&mutex_, [&] { return feedback_->pending_message(); });
    return message.empty() ? nb::object(nb::none()) : nb::object(BytesOf(message));
  }

  // The whole state, a number of vectors one behind the other.
  nb::bytes Dense() {
    const std::string bytes = Locked(&mutex_, [&] {
      const absl::Span<const float> dense = feedback_->dense();
      return std::string(reinterpret_cast<const char*>(dense.data()), sizeof(float) * dense.size());
    });
    return BytesOf(bytes);
  }

  // Copies the first vector of the state.
  void CopyResidual(const nb::sequence& out) {
    const WrittenArrays to(out, coder_->layout(), "output");
    Locked(&mutex_, [&] {
      for (size_t t = 0; t < to.tensors().size(); ++t) {
        const TensorSpec& tensor = coder_->layout().tensors()[t];
        std::copy_n(feedback_->dense().data() + tensor.offset, tensor.size, to.tensors()[t]);
      }
    });
  }

  void Restore(const nb::bytes& dense, const nb::bytes& pending) {
    RaiseIfError(Locked(&mutex_, [&] {
      std::vector<float> values(dense.size() / sizeof(float));
      std::memcpy(values.data(), dense.c_str(), values.size() * sizeof(float));
      return feedback_->Restore(values, "", ViewOf(pending));
    }));
  }

  std::string name() const { return std::string(feedback_->name()); }

 private:
  const SharedCoder coder_;
  std::unique_ptr<Feedback> feedback_;
  std::mutex mutex_;
  std::vector<float> delta_;
};

// UpdateHistory with the codec whose messages it packs, for any number of threads, one after the other.
class History {
 public:
  explicit History(SharedCoder coder) : coder_(std::move(coder)), history_(*LayoutOf(*coder_)) {}

  nb::bytes Pack(const nb::bytes& message) {
    return BytesOf(
        ValueOrRaiseMalformed(Locked(&mutex_, [&] { return coder_->codec().Pack(ViewOf(message), history_); })));
  }

  nb::bytes Unpack(const nb::bytes& packed) {
    return BytesOf(
        ValueOrRaiseMalformed(Locked(&mutex_, [&] { return coder_->codec().Unpack(ViewOf(packed), history_); })));
  }

  void Add(const nb::bytes& message) {
    RaiseIfMalformed(Locked(&mutex_, [&] { return coder_->codec().AddToHistory(ViewOf(message), &history_); }));
  }

  nb::bytes Serialize() {
    return BytesOf(Locked(&mutex_, [&] { return history_.Serialize(); }));
  }

  void Parse(const nb::bytes& bytes) {
    RaiseIfError(Locked(&mutex_, [&]() -> absl::Status {
      absl::StatusOr<UpdateHistory> history = UpdateHistory::Parse(*coder_->codec().PackedLayout(), ViewOf(bytes));
      if (!history.ok()) return history.status();
      history_ = *std::move(history);
      return absl::OkStatus();
    }));
  }

 private:
  static const Layout* LayoutOf(const Coder& coder) {
    const Layout* layout = coder.codec().PackedLayout();
    if (layout == nullptr) {
      RaiseCodecError(absl::StrCat("codec '", coder.codec().name(),
                                   "' sends no positions that a history could pack; use a sparse codec, such as sbc"));
    }
    return layout;
  }

  static std::string ValueOrRaiseMalformed(absl::StatusOr<std::string> value) {
    RaiseIfMalformed(value.status());
    return *std::move(value);
  }

  const SharedCoder coder_;
  UpdateHistory history_;
  std::mutex mutex_;
};

}  // namespace

NB_MODULE(_codecs, m) {
  m.def("table", Table);
  m.def("default_settings", DefaultSettings);
  nb::class_<Coder>(m, "Coder")
      .def("encode", Encode, nb::arg("update"), nb::arg("residual").none(), nb::arg("key"))
      .def("decode", Decode)
      .def("add_decoded", AddDecoded)
      .def("cost_bits", CostBits)
      .def_prop_ro("max_message_bytes", [](const Coder& coder) { return coder.codec().MaxMessageBytes(); });
  m.def("make_coder", MakeCoder);
  nb::class_<Memory>(m, "Memory")
      .def(nb::init<SharedCoder>())
      .def("compress", &Memory::Compress)
      .def("settle", &Memory::Settle)
      .def("reset", &Memory::Reset)
      .def("norm", &Memory::Norm)
      .def("pending", &Memory::Pending)
      .def("dense", &Memory::Dense)
      .def("copy_residual", &Memory::CopyResidual)
      .def("restore", &Memory::Restore)
      .def_prop_ro("name", &Memory::name);
  nb::class_<History>(m, "History")
      .def(nb::init<SharedCoder>())
      .def("pack", &History::Pack)
      .def("unpack", &History::Unpack)
      .def("add", &History::Add)
      .def("serialize", &History::Serialize)
      .def("parse", &History::Parse);
}

}  // namespace terse
