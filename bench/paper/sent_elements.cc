#include "bench/paper/sent_elements.h"

#include <string>
#include <vector>

#include "compression/codec_table.h"
#include "core/status.h"
#include "learning/models/model_table.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"

namespace terse {

absl::StatusOr<int64_t> SentElements(const PaperRow& row) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig file, ParseRunConfig(row.run, row.key));
  TERSE_ASSIGN_OR_RETURN(const RunConfig config, ToCore(file));
  TERSE_ASSIGN_OR_RETURN(const Layout layout, ModelLayout(config.model));
  TERSE_ASSIGN_OR_RETURN(const auto codec, MakeCodec(config.codec, layout));
  TERSE_ASSIGN_OR_RETURN(const std::string message, codec->Encode(std::vector<float>(layout.size(), 1.0f)));
  TERSE_ASSIGN_OR_RETURN(const auto sent, codec->SentPositions(message));
  return sent.has_value() ? static_cast<int64_t>(sent->size()) : layout.size();
}

}  // namespace terse
