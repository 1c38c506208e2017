# A source file with the bytes of one file, behind a function that a header declares. Run as a script by the build
# whenever the file changes:
#   cmake -DOUT=bytes.cc -DFILE=data.bin -DHEADER=folder/data.h -DFUNCTION=DataBytes -P TerseBytes.cmake
file(READ "${FILE}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "// Made by cmake/TerseBytes.cmake.
#include \"${HEADER}\"

namespace terse {
namespace {
constexpr unsigned char k${FUNCTION}[] = {${bytes}};
}  // namespace

absl::string_view ${FUNCTION}() { return {reinterpret_cast<const char*>(k${FUNCTION}), sizeof(k${FUNCTION})}; }

}  // namespace terse
")
