// Rules of runs with epochs (core/epochs.h): server.optimizer = 'svrg' or 'acc_svrg'.
#ifndef TERSE_PROTO_RUN_CONFIG_EPOCHS_H_
#define TERSE_PROTO_RUN_CONFIG_EPOCHS_H_

#include "proto/run_config_rules.h"

namespace terse {

// Appends every field that does not fit epochs, or that is for epochs alone in a run without; part of
// CheckAcrossFields. Fields are in their ranges.
void CheckEpochs(const v1::RunConfig& config, ConfigViolations* violations);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_EPOCHS_H_
