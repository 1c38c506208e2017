# A source file with the bytes of files, for WebAssets() of
# coordinator/web/dashboard.h. Run as a script by the build whenever one of them changes:
#   cmake -DOUT=assets.cc "-DASSETS=/=text/html=index.html;..." -P TerseAssets.cmake
set(arrays "")
set(rows "")
set(number 0)
foreach(asset IN LISTS ASSETS)
  string(REGEX MATCH "^([^=]+)=([^=]+)=(.+)$" matched "${asset}")
  if(NOT matched)
    message(FATAL_ERROR "TerseAssets: '${asset}' is not PATH=TYPE=FILE")
  endif()
  set(path "${CMAKE_MATCH_1}")
  set(type "${CMAKE_MATCH_2}")
  file(READ "${CMAKE_MATCH_3}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kBytes${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${path}\", \"${type}\", {reinterpret_cast<const char*>(kBytes${number}), sizeof(kBytes${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUT}" "// Made by cmake/TerseAssets.cmake.
#include \"coordinator/web/dashboard.h\"

namespace terse {
namespace {
${arrays}}  // namespace

absl::Span<const WebAsset> WebAssets() {
  static const WebAsset assets[] = {
${rows}  };
  return assets;
}

}  // namespace terse
")
