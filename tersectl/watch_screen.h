// Renders the whole screen of `tersectl watch` as text. Pure functions.
#ifndef TERSE_TERSECTL_WATCH_SCREEN_H_
#define TERSE_TERSECTL_WATCH_SCREEN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "terse/v1/admin.pb.h"
#include "tersectl/screen_row.h"

namespace terse {

struct WatchView {
  v1::Status status;
  std::vector<v1::Round> rounds;  // all, in the order of their ids
  std::vector<v1::Client> clients;
  std::vector<v1::Event> events;  // the newest, in the order of their ids
  std::string trouble;            // one line, empty when there is none
  int64_t now_us = 0;             // Unix time: ages are told from it
  size_t scroll = 0;              // clients above the first one that is shown
  bool help = false;              // keys and meanings in place of the tables
};

struct WatchScreen {
  std::vector<std::string> rows;  // `height` of them, none wider than `width`
  size_t scroll = 0;              // as far as it was possible
};

// Run, progress, figures, and below them as much of charts, newest rounds, clients and newest events as there is room
// for: on a low screen the charts go first, then the events. Names and reasons are shown as ScreenRow does; without
// `color` there is no escape sequence.
WatchScreen DrawWatch(const WatchView& view, const ScreenSize& size, bool color);

}  // namespace terse

#endif  // TERSE_TERSECTL_WATCH_SCREEN_H_
