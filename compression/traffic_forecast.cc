#include "compression/traffic_forecast.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compression/aggregate.h"
#include "compression/bit_stream.h"
#include "compression/codec_table.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "core/aggregation_facts.h"
#include "core/codec_choices.h"
#include "core/epochs.h"
#include "core/random.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr double kFloatBits = 32;

// Larger models are measured on one tensor of so many elements: what a tensor costs by itself is then nothing.
constexpr int64_t kMeasuredElements = int64_t{1} << 21;

// A round is imitated with so many elements in all, each update with so many at least and at most.
constexpr int64_t kImitatedElements = int64_t{1} << 23;
constexpr int64_t kFewestElements = 1 << 12;
constexpr int64_t kMostElements = 1 << 16;
constexpr int64_t kMostImitated = 1 << 12;
// With fewer listed elements an update is no picture of a large one.
constexpr double kFewestListed = 64;

// Sign, exponent and fraction of a value that is the mean of a few others, with the code of the sparse step: about
// normal magnitudes take 2.7 bits for their exponents.
constexpr double kValueBits = 26.6;

// By how much sizes may differ from one distribution of values to another: of a codec's messages, which then have a
// size of their own, and of averages.
constexpr double kSameSize = 0.03;
constexpr double kSimilarSize = 0.1;

// The distributions of values: normal; its cubes, much smaller, of which few are large; and uniform.
enum class Shape { kNormal, kHeavyTails, kUniform };

std::vector<float> Values(int64_t count, Shape shape, Random* random) {
  std::vector<float> values(count);
  for (float& value : values) {
    const double uniform = random->Uniform();
    const double normal = std::sqrt(-2 * std::log(1 - uniform)) * std::cos(2 * M_PI * random->Uniform());
    value = static_cast<float>(shape == Shape::kNormal       ? normal
                               : shape == Shape::kHeavyTails ? 1e-3 * normal * normal * normal
                                                             : 2 * uniform - 1);
  }
  return values;
}

Layout OneTensorOf(int64_t elements) { return *Layout::Create({{"weight", {elements}}}); }

int64_t Choice(const RunConfig& config) { return HasEpochs(config) ? kGradientStepChoice : 0; }

// Bits an element of a codec's messages, or nullopt where they depend on the data; and the share of elements that one
// message changes.
struct Measured {
  absl::optional<double> bits;
  double density = 1;
};

absl::StatusOr<Measured> MeasureCodec(const Codec& codec, int64_t choice) {
  EncodeOptions options;
  options.choice = choice;
  Random random(1);
  std::vector<float> decoded(codec.layout().size());
  double first = 0, farthest = 0;
  Measured measured;
  for (const Shape shape : {Shape::kNormal, Shape::kHeavyTails, Shape::kUniform}) {
    TERSE_ASSIGN_OR_RETURN(const std::string message,
                           codec.Encode(Values(codec.layout().size(), shape, &random), options));
    const double bits = 8.0 * static_cast<double>(message.size()) / static_cast<double>(decoded.size());
    if (shape != Shape::kNormal) {
      farthest = std::max(farthest, std::abs(bits - first));
      continue;
    }
    first = bits;
    TERSE_RETURN_IF_ERROR(codec.AddDecoded(message, 1.0f, absl::MakeSpan(decoded)));
    const auto listed = std::count_if(decoded.begin(), decoded.end(), [](float value) { return value != 0; });
    measured.density = static_cast<double>(listed) / static_cast<double>(decoded.size());
  }
  if (farthest <= kSameSize * first) measured.bits = first;
  return measured;
}

// Bits an element of the sparse step of an average whose updates change a share of the elements each.
double SparseBits(double density, int64_t updates) {
  const double listed = -std::expm1(static_cast<double>(updates) * std::log1p(-std::min(density, 1 - 1e-12)));
  const auto entropy = [](double p) { return p <= 0 || p >= 1 ? 0.0 : -p * std::log2(p); };
  return entropy(listed) + entropy(1 - listed) + listed * kValueBits;
}

// The same of a round that is imitated with the run's codec, for few elements.
absl::StatusOr<double> ImitatedBits(const CodecSpec& spec, int64_t updates, float trust, int64_t elements,
                                    Shape shape) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeCodec(spec, OneTensorOf(elements)));
  Random random(2);
  const std::vector<float> values = Values(elements, shape, &random);
  std::vector<float> update(elements);
  std::vector<std::string> messages;
  for (int64_t i = 0; i < std::min(updates, kMostImitated); ++i) {
    const size_t shift = random.Below(elements);
    std::rotate_copy(values.begin(), values.begin() + shift, values.end(), update.begin());
    const float size = static_cast<float>(std::exp(random.Uniform(-0.5, 0.5)) * (random.Below(2) == 0 ? 1 : -1));
    for (float& value : update) value *= size;
    EncodeOptions options;
    options.key = {1, 1, static_cast<uint64_t>(i)};
    TERSE_ASSIGN_OR_RETURN(std::string message, codec->Encode(update, options));
    messages.push_back(std::move(message));
  }
  const std::vector<absl::string_view> views(messages.begin(), messages.end());
  TERSE_RETURN_IF_ERROR(ImputeUpdates(*codec, views, {}, trust, 1, absl::MakeSpan(update)));
  return 8.0 * static_cast<double>(BuildStepDownstream(DownstreamMode::kAuto, update).size()) /
         static_cast<double>(elements);
}

// Bits an element of the messages to clients, or the most that they can be.
struct Downward {
  absl::optional<double> bits;
  bool at_most = false;
};

// Those of a step that the updates can stand for.
absl::StatusOr<Downward> StepBits(const RunConfig& config, const Measured& up, int64_t updates, int64_t elements) {
  if (config.downstream == DownstreamMode::kDense) return Downward{kFloatBits};
  if (!up.bits.has_value()) return Downward{};
  // A length of two or three bytes an update, and as much for its samples.
  const double forward = static_cast<double>(updates) * (*up.bits + 8.0 * 3 / static_cast<double>(elements));
  if (config.downstream == DownstreamMode::kForward) return Downward{forward};
  const int64_t imitated =
      std::min(elements, std::clamp(kImitatedElements / updates, int64_t{kFewestElements}, int64_t{kMostElements}));
  const double others = std::min(forward, kFloatBits);
  if (up.density * static_cast<double>(imitated) < kFewestListed) {
    return Downward{std::min(SparseBits(up.density, updates), others)};
  }
  const CodecSpec codec = UpdateChoices(config)[Choice(config)];
  const float trust = FactsOf(config.aggregation.rule).is_average ? 0 : 1;
  TERSE_ASSIGN_OR_RETURN(const double sparse, ImitatedBits(codec, updates, trust, imitated, Shape::kNormal));
  TERSE_ASSIGN_OR_RETURN(const double heavy, ImitatedBits(codec, updates, trust, imitated, Shape::kHeavyTails));
  if (std::min(sparse, heavy) >= others) return Downward{others};
  if (std::abs(heavy - sparse) > kSimilarSize * sparse) return Downward{others, /*at_most=*/true};
  return Downward{std::min(sparse, others)};
}

// Whether a round's step can be sent as its updates.
bool MayForward(const RunConfig& config) {
  return config.server.name == "average" && FactsOf(config.aggregation.rule).may_forward && !HasEpochs(config);
}

// Sets what would cost a tenth. Both settings work with every run that has neither epochs nor a controller of bits.
absl::Status FindCheaper(const RunConfig& config, const Layout& layout, const Measured& up, int64_t elements,
                         TrafficForecast* forecast) {
  if (!forecast->down_bits.has_value() || HasEpochs(config) || config.control.name == "mqgrad") return absl::OkStatus();
  const double tenth = *forecast->down_bits / 10;
  RunConfig other = config;
  other.downstream = DownstreamMode::kAuto;
  if (MayForward(config) && config.downstream != DownstreamMode::kCoded) {
    TERSE_ASSIGN_OR_RETURN(const Downward any, StepBits(other, up, forecast->updates, elements));
    if (any.bits.has_value() && *any.bits <= tenth) {
      forecast->cheaper = "codec.downstream = 'auto'";
      forecast->cheaper_bits = *any.bits;
      return absl::OkStatus();
    }
  }
  CodecSpec ternary;
  ternary.name = "stc";
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeCodec(ternary, layout));
  TERSE_ASSIGN_OR_RETURN(const Measured coded, MeasureCodec(*codec, 0));
  if (!coded.bits.has_value() || *coded.bits > tenth) return absl::OkStatus();
  forecast->cheaper = absl::StrFormat("codec.downstream = 'stc' with downstream.density = %g", ternary.density);
  forecast->cheaper_bits = *coded.bits;
  return absl::OkStatus();
}

std::string SizeText(const absl::optional<double>& bits, int64_t elements) {
  if (!bits.has_value()) return "what depends on the data";
  const double bytes = *bits * static_cast<double>(elements) / 8;
  if (bytes < 1e3) return absl::StrFormat("about %.0f B", bytes);
  if (bytes < 1e6) return absl::StrFormat("about %.3g kB", bytes / 1e3);
  return bytes < 1e9 ? absl::StrFormat("about %.3g MB", bytes / 1e6) : absl::StrFormat("about %.3g GB", bytes / 1e9);
}

}  // namespace

Layout MillionParameters() { return OneTensorOf(kMillion); }

absl::StatusOr<TrafficForecast> ForecastTraffic(const RunConfig& config, const Layout& model) {
  const Layout layout = model.size() <= kMeasuredElements ? model : OneTensorOf(kMeasuredElements);
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeUpdateCodec(config, layout));
  TERSE_ASSIGN_OR_RETURN(const Measured up, MeasureCodec(*codec, Choice(config)));
  TrafficForecast forecast;
  forecast.elements = model.size();
  forecast.updates = std::max<int64_t>(1, config.rounds.cohort);
  // A controller chooses among several codings, whose sizes differ.
  const bool is_one = UpdateChoices(config).size() == 1 || HasEpochs(config);
  if (is_one) forecast.up_bits = up.bits;
  if (config.downstream == DownstreamMode::kCoded) {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> coded, MakeDownstreamCodec(config, layout));
    TERSE_ASSIGN_OR_RETURN(const Measured down, MeasureCodec(*coded, 0));
    if (DownstreamChoices(config).size() == 1) forecast.down_bits = down.bits;
  } else if (MayForward(config)) {
    Measured any = up;
    if (!is_one) any.bits.reset();
    TERSE_ASSIGN_OR_RETURN(const Downward down, StepBits(config, any, forecast.updates, model.size()));
    forecast.down_bits = down.bits;
    forecast.down_at_most = down.at_most;
  } else {
    forecast.down_bits = kFloatBits;
    forecast.down_at_most = config.downstream == DownstreamMode::kAuto;
  }
  TERSE_RETURN_IF_ERROR(FindCheaper(config, layout, up, model.size(), &forecast));
  return forecast;
}

std::string TrafficText(const TrafficForecast& forecast, bool per_million) {
  const std::string each = per_million ? "round and million parameters" : "round";
  std::string text =
      absl::StrCat("a client sends ", SizeText(forecast.up_bits, forecast.elements), " and receives ",
                   forecast.down_at_most ? "at most " : "", SizeText(forecast.down_bits, forecast.elements), " a ",
                   each, " (of ", forecast.updates, forecast.updates == 1 ? " update" : " updates", ")\n");
  if (forecast.cheaper.empty()) return text;
  const int times = static_cast<int>(*forecast.down_bits / forecast.cheaper_bits);
  absl::StrAppend(&text, "with ", forecast.cheaper, " it would receive ",
                  SizeText(forecast.cheaper_bits, forecast.elements), ", 1/", times, " of that\n");
  return text;
}

}  // namespace terse
