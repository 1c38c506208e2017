// Residual networks (He et al. 2015 and 2016) as the implemented papers used them. All in channels-last, which is a
// quarter faster on processors.
#ifndef TERSE_LEARNING_MODELS_RESNET_H_
#define TERSE_LEARNING_MODELS_RESNET_H_

#include "learning/models/model.h"

namespace terse {

// Each model reads spec.classes.

// ResNet32 of SBC's CIFAR-10 experiments (Sattler et al. 2018, supplement VII-C): TensorFlow's official network of
// 2018. Three stages of five blocks with 16, 32 and 64 maps; normalisation and ReLU stand before each convolution
// (version 2), and every stage begins with a projection. 466,970 parameters.
ModelDefinition Resnet32(const ModelSpec& spec);

// ResNet50 of SBC's ImageNet experiments, from the same source: bottleneck blocks, version 2, [N, 3, 224, 224], 1,000
// classes. 25,549,352 parameters.
ModelDefinition Resnet50(const ModelSpec& spec);

// ResNet110 of MCGQ's CIFAR-10 experiments (Mordido et al. 2020, section 4.2.1): three stages of 18 blocks with 16, 32
// and 64 maps, normalisation after each convolution, projections where the shape changes. 1,730,714 parameters.
ModelDefinition Resnet110(const ModelSpec& spec);

// ResNet18 of MCGQ's CIFAR-100 experiments (section 4.2.2, after Karimireddy et al. 2019) and of the report on
// quantized SGD: four stages of two blocks with 64 to 512 maps for images of 32x32. 11,220,132 parameters with 100
// classes.
ModelDefinition Resnet18(const ModelSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_RESNET_H_
