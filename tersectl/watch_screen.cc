#include "tersectl/watch_screen.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tersectl/curve_panel.h"
#include "tersectl/report.h"
#include "tersectl/screen_row.h"
#include "tersectl/text_table.h"
#include "tersectl/watch.h"

namespace terse {
namespace {

constexpr size_t kWidestBar = 40;
constexpr size_t kHighestChart = 12;
constexpr char kKeys[] = "q quit   j k scroll clients   ? help";

// A part of the screen that may have from `least` to `most` rows, and draws exactly as many as it is told.
struct Section {
  size_t least, most;
  std::function<void(size_t rows, ScreenPage* page)> draw;
  size_t given = 0;
};

std::string AgeText(int64_t since_us, int64_t now_us) {
  return DurationText(static_cast<double>(std::max<int64_t>(0, now_us - since_us)) / 1e6);
}

// Filled in eighths of a character.
std::string Bar(double share, size_t width) {
  static constexpr const char* kEighths[] = {"", "\u258F", "\u258E", "\u258D", "\u258C", "\u258B", "\u258A", "\u2589"};
  const size_t eighths = static_cast<size_t>(share * static_cast<double>(8 * width));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "\u2588";
  bar += kEighths[eighths % 8];
  for (size_t i = (eighths + 7) / 8; i < width; ++i) bar += "\u00B7";
  return bar;
}

// Those of the open round that have not delivered, by name. Nobody waits for the clients of a buffered run, which train
// across rounds.
std::vector<std::string> Stragglers(const WatchView& view) {
  std::vector<std::string> names;
  const bool is_open = !view.rounds.empty() && view.rounds.back().state() == "open";
  if (!is_open || view.status.config().rounds().mode() == "buffered") return names;
  for (const v1::Client& client : view.clients) {
    if (client.state() == "training") names.push_back(client.name());
  }
  return names;
}

void PutTitle(const WatchView& view, ScreenPage* page) {
  ScreenRow row = page->NewRow();
  row.Add("run ");
  row.Add(view.status.run(), Ink::kBold);
  row.Add("  ");
  row.Add(view.status.state(), Ink::kState);
  row.Add(absl::StrCat("  ", view.status.phase()));
  const std::vector<std::string> stragglers = Stragglers(view);
  if (!stragglers.empty()) {
    row.Add(absl::StrCat(", waits for ", stragglers.size(), ": ", absl::StrJoin(stragglers, ", ")));
  }
  if (!view.status.reason().empty()) row.Add(absl::StrCat(" (", view.status.reason(), ")"));
  page->Put(row);
}

void PutProgress(const WatchView& view, ScreenPage* page) {
  const WatchLines lines = ProgressOf(view.status, view.rounds);
  const double share = lines.ShareDone();
  std::string text = absl::StrCat(static_cast<int>(100 * share), "%  ", lines.Progress());
  if (share < 1 && lines.SecondsLeft() >= 0) absl::StrAppend(&text, "  ", DurationText(lines.SecondsLeft()), " left");
  ScreenRow row = page->NewRow();
  const size_t taken = ColumnsOf(text) + 2;
  const size_t bar = taken < page->size.width ? std::min(kWidestBar, page->size.width - taken) : 0;
  if (bar >= 5) row.Add(absl::StrCat(Bar(share, bar), "  "), Ink::kGraph);
  row.Add(text);
  page->Put(row);
}

void PutFigures(const WatchView& view, ScreenPage* page) {
  const Summary summary = Summarize(view.status, view.rounds);
  const auto rate = [](const std::optional<double>& value) { return RateText(value.value_or(0)); };
  ScreenRow row = page->NewRow();
  row.Add(absl::StrCat("up ", BytesText(summary.wire_bytes_up), "  down ", BytesText(summary.wire_bytes_down),
                       "  compression "));
  row.Add(rate(summary.compression_up_wire), Ink::kBold);
  row.Add(absl::StrCat(" up, ", rate(summary.compression_both_wire), " both ways, payload ",
                       rate(summary.compression_up_payload)));
  page->Put(row);
}

struct Cell {
  std::string text;
  size_t columns;
  bool right;
};

void PutCells(const std::vector<Cell>& cells, Ink ink, ScreenPage* page) {
  ScreenRow row = page->NewRow();
  for (const Cell& cell : cells) {
    row.AddCell(cell.text, cell.columns, cell.right, ink);
    row.Add("  ");
  }
  page->Put(row);
}

std::vector<Cell> RoundCells(const v1::Round& round, int64_t now_us) {
  const bool is_committed = round.state() == "committed";
  const int64_t end_us = is_committed ? round.committed_us() : now_us;
  const bool has_time = is_committed || round.state() == "open" || round.state() == "closed";
  const auto where = [](bool known, std::string text) { return known ? std::move(text) : std::string(); };
  return {{absl::StrCat(round.id()), 6, true},
          {round.state(), 9, false},
          {where(round.has_accuracy(), DecimalText(round.accuracy())), 8, true},
          {where(round.has_train_loss(), DecimalText(round.train_loss())), 10, true},
          {where(has_time, AgeText(round.opened_us(), end_us)), 8, true},
          {BytesText(round.wire_bytes_up()), 8, true},
          {BytesText(round.wire_bytes_down()), 8, true},
          {where(round.has_updates(), absl::StrCat(round.updates())), 7, true}};
}

void PutRounds(const WatchView& view, size_t rows, ScreenPage* page) {
  PutCells({{"round", 6, true},
            {"state", 9, false},
            {"accuracy", 8, true},
            {"train loss", 10, true},
            {"time", 8, true},
            {"up", 8, true},
            {"down", 8, true},
            {"updates", 7, true}},
           Ink::kBold, page);
  for (size_t i = 0; i + 1 < rows; ++i) {
    PutCells(RoundCells(view.rounds[view.rounds.size() - 1 - i], view.now_us), Ink::kState, page);
  }
}

std::string FleetText(const WatchView& view) {
  const auto count = [&](const char* state) {
    return std::count_if(view.clients.begin(), view.clients.end(),
                         [&](const v1::Client& client) { return client.state() == state; });
  };
  return absl::StrCat(view.status.clients_connected(), " of ", view.clients.size(), " connected, ",
                      view.status.clients_wanted(), " wanted, ", count("training"), " training, ", count("set aside"),
                      " set aside");
}

// Those that train first, then the others that are here.
std::vector<const v1::Client*> InOrder(const std::vector<v1::Client>& clients) {
  std::vector<const v1::Client*> order;
  for (const v1::Client& client : clients) order.push_back(&client);
  const auto rank = [](const v1::Client* client) {
    return client->state() == "training" ? 0 : client->connected() ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  return order;
}

void PutClients(const WatchView& view, size_t rows, size_t* scroll, ScreenPage* page) {
  ScreenRow title = page->NewRow();
  title.AddCell("clients", 9, false, Ink::kBold);
  title.Add(FleetText(view));
  page->Put(title);
  const std::vector<const v1::Client*> order = InOrder(view.clients);
  const size_t shown = rows - 1;
  *scroll = std::min(view.scroll, order.size() - std::min(order.size(), shown));
  for (size_t i = *scroll; i < std::min(order.size(), *scroll + shown); ++i) {
    const v1::Client& client = *order[i];
    std::string remark = client.connected()
                             ? absl::StrCat("step ", client.steps_done())
                             : absl::StrCat("seen ", AgeText(client.last_seen_us(), view.now_us), " ago");
    if (client.set_aside_until_us() != 0) remark = client.set_aside_reason();
    PutCells({{client.name(), 20, false},
              {client.state(), 9, false},
              {BytesText(client.wire_bytes_up()), 8, true},
              {absl::StrCat(client.updates_applied(), " applied"), 12, true},
              {remark, page->size.width, false}},
             Ink::kState, page);
  }
}

void PutEvents(const WatchView& view, size_t rows, ScreenPage* page) {
  ScreenRow title = page->NewRow();
  title.Add("events", Ink::kBold);
  page->Put(title);
  for (size_t i = 0; i + 1 < rows; ++i) {
    const v1::Event& event = view.events[view.events.size() - 1 - i];
    ScreenRow row = page->NewRow();
    row.AddCell(AgeText(event.time_us(), view.now_us), 7, true);
    row.Add(" ago  ");
    row.Add(event.kind(), Ink::kBold);
    if (event.round() != 0) row.Add(absl::StrCat("  round ", event.round()));
    if (event.client() >= 0) row.Add(absl::StrCat("  ", ClientText(event.client(), event.client_name())));
    row.Add(absl::StrCat("  ", event.detail()), Ink::kDim);
    page->Put(row);
  }
}

void PutHelp(ScreenPage* page) {
  for (const char* line : {"q, Ctrl-C         leave; the run goes on", "j, k, down, up    scroll the clients",
                           "?                 back to the tables", "",
                           "compression       what dense updates would take, over what was sent on the wire",
                           "waits for         clients of the open round that have not delivered",
                           "tersectl watch --lines prints a line for each round instead."}) {
    ScreenRow row = page->NewRow();
    row.Add(line);
    page->Put(row);
  }
}

// Gives each section its least where there is room, in the order of `importance`, then the rest in turn.
void Share(size_t rows, const std::vector<Section*>& importance) {
  for (Section* section : importance) {
    if (section->least > rows) continue;
    section->given = section->least;
    rows -= section->least;
  }
  for (bool has_grown = true; has_grown && rows > 0;) {
    has_grown = false;
    for (Section* section : importance) {
      if (rows == 0 || section->given == 0 || section->given >= section->most) continue;
      ++section->given;
      --rows;
      has_grown = true;
    }
  }
}

void PutSections(const WatchView& view, size_t room, size_t* scroll, ScreenPage* page) {
  const auto of_list = [](size_t size) { return std::min<size_t>(size, 1) + 1; };
  Section charts{4, kHighestChart,
                 [&](size_t rows, ScreenPage* to) { PutCurves(EvaluatedPoints(view.rounds), rows, to); }};
  Section rounds{of_list(view.rounds.size()), view.rounds.size() + 1,
                 [&](size_t rows, ScreenPage* to) { PutRounds(view, rows, to); }};
  Section clients{of_list(view.clients.size()), view.clients.size() + 1,
                  [&](size_t rows, ScreenPage* to) { PutClients(view, rows, scroll, to); }};
  Section events{of_list(view.events.size()), view.events.size() + 1,
                 [&](size_t rows, ScreenPage* to) { PutEvents(view, rows, to); }};
  Share(room, {&rounds, &clients, &events, &charts});
  for (const Section* section : {&charts, &rounds, &clients, &events}) {
    if (section->given > 0) section->draw(section->given, page);
  }
}

}  // namespace

WatchScreen DrawWatch(const WatchView& view, const ScreenSize& size, bool color) {
  ScreenPage page{size, color, {}};
  WatchScreen screen;
  PutTitle(view, &page);
  PutProgress(view, &page);
  PutFigures(view, &page);
  if (!view.trouble.empty()) {
    ScreenRow row = page.NewRow();
    row.Add(view.trouble, Ink::kAlarm);
    page.Put(row);
  }
  const size_t last = std::max<size_t>(size.height, 1) - 1;
  if (view.help) {
    PutHelp(&page);
  } else if (last > page.rows.size()) {
    PutSections(view, last - page.rows.size(), &screen.scroll, &page);
  }
  page.rows.resize(last);
  ScreenRow keys = page.NewRow();
  keys.Add(kKeys, Ink::kDim);
  page.Put(keys);
  screen.rows = std::move(page.rows);
  return screen;
}

}  // namespace terse
