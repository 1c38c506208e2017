// AlexNet (Krizhevsky, Sutskever and Hinton 2012) as one tower, the "large convolutional neural network with 58M
// parameters" that the report on quantized SGD trains on CIFAR-10: 58,322,314 with ten classes.
//
//   x [N, 3, R, C], enlarged to [N, 3, 227, 227]
//   conv1  96 maps 11x11, stride 4, ReLU; max-pool 3x3, stride 2 -> [N, 96, 27, 27]
//   conv2  256 maps 5x5, padding 2, ReLU; max-pool 3x3, stride 2 -> [N, 256, 13, 13]
//   conv3  384 maps 3x3, padding 1, ReLU
//   conv4  384 maps 3x3, padding 1, ReLU
//   conv5  256 maps 3x3, padding 1, ReLU; max-pool 3x3, stride 2 -> [N, 256, 6, 6]
//   fc6    9216 -> 4096, ReLU, dropout 0.5
//   fc7    4096 -> 4096, ReLU, dropout 0.5
//   fc8    4096 -> classes, logits
//
// No local response normalisation and no groups: both were for the two graphics cards and the saturation of that time.
#ifndef TERSE_LEARNING_MODELS_ALEXNET_H_
#define TERSE_LEARNING_MODELS_ALEXNET_H_

#include "learning/models/model.h"

namespace terse {

// Reads spec.classes and spec.dropout.
ModelDefinition AlexNet(const ModelSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_ALEXNET_H_
