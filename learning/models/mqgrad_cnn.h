// The 5-layer network of MQGrad's CIFAR-10 experiments (Cui et al. 2018, section 4.1).
//
//   x [N, 3, 32, 32], the middle 28x28 of it
//   conv1  64 maps 5x5, padding 2, ReLU; max-pool 2x2 -> [N, 64, 14, 14]; local response normalisation
//   conv2  64 maps 5x5, padding 2, ReLU; local response normalisation; max-pool 2x2 -> [N, 64, 7, 7]
//   fc3    3136 -> 2304, ReLU
//   fc4    2304 -> 3840, ReLU
//   fc5    3840 -> 10, logits
//
// 16,224,586 parameters, 99% of them in fc3 and fc4. The paper's shapes leave 28x28 pixels as the input, which
// TensorFlow's CIFAR-10 tutorial, whose layers these are, crops from the image. The paper names no start: convolutions
// start as the tutorial's, linear layers as PyTorch's; with the tutorial's deviation of 0.04, which was for narrower
// layers, the paper's learning rate of 0.2 diverges in its second step.
#ifndef TERSE_LEARNING_MODELS_MQGRAD_CNN_H_
#define TERSE_LEARNING_MODELS_MQGRAD_CNN_H_

#include "learning/models/model.h"

namespace terse {

// Reads spec.classes.
ModelDefinition MqgradCnn(const ModelSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_MQGRAD_CNN_H_
