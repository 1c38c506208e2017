// Whether a run's model, data and loss fit each other, as far as their names tell without the files.
#ifndef TERSE_PROTO_RUN_CONFIG_FIT_H_
#define TERSE_PROTO_RUN_CONFIG_FIT_H_

#include "proto/run_config_rules.h"

namespace terse {

// Appends every contradiction between [model], [data] and train.loss; part of CheckNewRun. It knows the models
// and data sets of Terse's own (learning/models, learning/datasets); what a module, a plugin or a file brings is judged
// by whoever reads it.
void CheckFit(const v1::RunConfig& config, ConfigViolations* violations);

// Whether the run's data set is one of Terse's own that is made of examples; false for texts and for what a plugin
// reads.
bool ReadsExamples(const v1::RunConfig& config);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_FIT_H_
