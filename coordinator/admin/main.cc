#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "coordinator/admin/cli.h"

int main(int argc, char** argv) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  const bool is_asked = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  return terse::RunTersectl(argc, argv, {&std::cout, &std::cerr, color, is_asked ? &std::cin : nullptr});
}
