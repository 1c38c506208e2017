// The formats in which a coordinator gives a run's model away.
#ifndef TERSE_PROTO_EXPORT_FORMATS_H_
#define TERSE_PROTO_EXPORT_FORMATS_H_

#include <string>

#include "terse/v1/admin.pb.h"

namespace terse {

// A row of the table: the format's name in the HTTP API, on the dashboard and in errors, and what follows the dot in
// the name of such a file.
struct ExportFormatRow {
  v1::ExportRequest::Format format;
  const char* name;
  const char* ending;
};

// Every format of terse.v1.ExportRequest. The dashboard's page offers the same ones, as command_api_test.cc makes sure.
inline constexpr ExportFormatRow kExportFormats[] = {
    {v1::ExportRequest::FORMAT_TORCHSCRIPT, "torchscript", "pt"},
    {v1::ExportRequest::FORMAT_SAFETENSORS, "safetensors", "safetensors"},
    {v1::ExportRequest::FORMAT_NPZ, "npz", "npz"},
    {v1::ExportRequest::FORMAT_VOCABULARY, "vocabulary", "vocabulary.json"},
};

// Returns the names of all formats, "torchscript, safetensors, ...", for errors.
inline std::string ExportFormatNames() {
  std::string names;
  for (const ExportFormatRow& row : kExportFormats) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

// Returns the ending of the files of a format; "" for one that the table does not have.
inline const char* EndingOf(v1::ExportRequest::Format format) {
  for (const ExportFormatRow& row : kExportFormats) {
    if (row.format == format) return row.ending;
  }
  return "";
}

}  // namespace terse

#endif  // TERSE_PROTO_EXPORT_FORMATS_H_
