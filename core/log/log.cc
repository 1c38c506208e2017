#include "core/log/log.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/log/plain_text.h"
#include "core/log/recent_lines.h"
#include "core/status.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace terse {
namespace {

constexpr struct {
  absl::string_view name;
  LogLevel level;
  spdlog::level::level_enum library;
} kLevels[] = {{"debug", LogLevel::kDebug, spdlog::level::debug},
               {"info", LogLevel::kInfo, spdlog::level::info},
               {"warn", LogLevel::kWarn, spdlog::level::warn},
               {"error", LogLevel::kError, spdlog::level::err}};

absl::string_view NameOf(spdlog::level::level_enum level) {
  return absl::c_find_if(kLevels, [level](const auto& row) { return row.library == level; })->name;
}

absl::StatusOr<LogLevel> ParseLevel(absl::string_view name) {
  const auto* const row = absl::c_find_if(kLevels, [name](const auto& known) { return known.name == name; });
  if (row != std::end(kLevels)) return row->level;
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is no level; the levels are debug, info, warn and error"));
}

// %*: the level as --log-level calls it; the library says "warning".
class LevelFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& line, const std::tm&, spdlog::memory_buf_t& out) override {
    const absl::string_view name = NameOf(line.level);
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelFlag>(); }
};

std::unique_ptr<spdlog::formatter> MakeFormatter(LogFormat format) {
  const bool json = format == LogFormat::kJson;
  auto formatter = std::make_unique<spdlog::pattern_formatter>(json ? spdlog::pattern_time_type::utc
                                                                    : spdlog::pattern_time_type::local);
  // In JSON the payload supplies everything after the level, the closing brace too.
  formatter->add_flag<LevelFlag>('*').set_pattern(json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%*",%v)"
                                                       : "%Y-%m-%d %H:%M:%S.%e %^%*%$ %v");
  return formatter;
}

struct Output {
  LogSettings settings;
  std::shared_ptr<spdlog::logger> logger;
};

Output MakeOutput(const LogSettings& settings, std::ostream* out) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (out != nullptr) {
    sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(*out);
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::logger>("terse", std::move(sink));
  logger->set_formatter(MakeFormatter(settings.format));
  logger->set_level(spdlog::level::trace);  // LogLevels decide
  return {settings, std::move(logger)};
}

Output& Current() {
  static Output* const output = new Output(MakeOutput({}, nullptr));
  return *output;
}

// A value that could be read as several, or as the end of them, stands in quotes.
std::string Value(absl::string_view text) {
  const std::string escaped = PlainText(text);
  if (escaped.find_first_of(" =]\"") == std::string::npos) return escaped;
  return absl::StrCat("\"", absl::StrReplaceAll(escaped, {{"\"", "\\\""}}), "\"");
}

std::string HumanText(absl::string_view component, const LogFields& fields, absl::string_view message) {
  std::vector<std::string> known;
  if (!fields.run.empty()) known.push_back(absl::StrCat("run=", Value(fields.run)));
  if (fields.round > 0) known.push_back(absl::StrCat("round=", fields.round));
  if (!fields.client.empty()) {
    known.push_back(absl::StrCat("client=", Value(fields.client)));
  } else if (fields.client_index >= 0) {
    known.push_back(absl::StrCat("client=", fields.client_index));
  }
  const std::string about = known.empty() ? "" : absl::StrCat(" [", absl::StrJoin(known, " "), "]");
  return absl::StrCat(component, about, ": ", PlainText(message));
}

std::string JsonText(absl::string_view component, const LogFields& fields, absl::string_view message) {
  nlohmann::ordered_json json;
  json["component"] = std::string(component);
  if (!fields.run.empty()) json["run"] = std::string(fields.run);
  if (fields.round > 0) json["round"] = fields.round;
  if (!fields.client.empty()) {
    json["client"] = std::string(fields.client);
  } else if (fields.client_index >= 0) {
    json["client"] = fields.client_index;
  }
  json["message"] = std::string(message);
  // In ASCII, so that nothing but text reaches a terminal either.
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace).substr(1);
}

}  // namespace

absl::string_view LogLevelName(LogLevel level) { return kLevels[static_cast<size_t>(level)].name; }

LogLevel LogLevels::Of(absl::string_view component) const {
  const auto own = by_component.find(component);
  return own != by_component.end() ? own->second : standard;
}

absl::StatusOr<LogLevels> ParseLogLevels(absl::string_view text, absl::Span<const absl::string_view> components) {
  LogLevels levels;
  bool has_standard = false;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> split = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const bool is_standard = !absl::StrContains(part, '=');
    if (!is_standard && !absl::c_linear_search(components, split.first)) {
      return absl::InvalidArgumentError(absl::StrCat("there is no component '", split.first, "'; the components are ",
                                                     absl::StrJoin(components, ", ")));
    }
    TERSE_ASSIGN_OR_RETURN(const LogLevel level, ParseLevel(is_standard ? part : split.second));
    const bool is_new = is_standard ? !std::exchange(has_standard, true)
                                    : levels.by_component.emplace(std::string(split.first), level).second;
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("two levels for ", is_standard ? "all components" : split.first, "; give one"));
    }
    if (is_standard) levels.standard = level;
  }
  return levels;
}

void ConfigureLog(const LogSettings& settings, std::ostream* out) { Current() = MakeOutput(settings, out); }

bool IsLogged(LogLevel level, absl::string_view component) { return level >= Current().settings.levels.Of(component); }

void Log(LogLevel level, absl::string_view component, const LogFields& fields, absl::string_view message) {
  if (!IsLogged(level, component)) return;
  const Output& output = Current();
  const bool json = output.settings.format == LogFormat::kJson;
  output.logger->log(kLevels[static_cast<size_t>(level)].library,
                     json ? JsonText(component, fields, message) : HumanText(component, fields, message));
  AddRecentLine(level, component, fields, message);
}

}  // namespace terse
