#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "tersectl/cli.h"

int main(int argc, char** argv) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  const bool is_asked = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  const char* kind = std::getenv("TERM");
  const bool full_screen = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && kind != nullptr &&
                           *kind != '\0' && std::strcmp(kind, "dumb") != 0;
  winsize window = {};
  const bool has_size = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0;
  return terse::RunTersectl(argc, argv,
                            {&std::cout, &std::cerr, color, is_asked ? &std::cin : nullptr, full_screen,
                             has_size ? size_t{window.ws_col} : 0});
}
