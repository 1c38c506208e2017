// LeNet5-Caffe, the model of SBC's MNIST experiments (Sattler et al. 2018, supplement VII-C): the network of the Caffe
// MNIST tutorial, lenet_train_test.prototxt.
//
//   x [N, 1, 28, 28] in 0..1
//   conv1  20 maps 5x5, stride 1, no padding -> [N, 20, 24, 24];  max-pool 2x2 -> [N, 20, 12, 12]
//   conv2  50 maps 5x5, stride 1, no padding -> [N, 50, 8, 8];    max-pool 2x2 -> [N, 50, 4, 4]
//   ip1    800 -> 500, ReLU
//   ip2    500 -> 10, logits
//
// 431,080 parameters; only ip1 has a non-linearity, as in the tutorial. Weights start by Caffe's xavier rule, biases at
// 0.
#ifndef TERSE_LEARNING_MODELS_LENET5_CAFFE_H_
#define TERSE_LEARNING_MODELS_LENET5_CAFFE_H_

#include "learning/models/model.h"

namespace terse {

// Reads spec.classes.
ModelDefinition Lenet5Caffe(const ModelSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_LENET5_CAFFE_H_
