// Models that take one vector an example.
#ifndef TERSE_LEARNING_MODELS_DENSE_NETS_H_
#define TERSE_LEARNING_MODELS_DENSE_NETS_H_

#include "learning/models/model.h"

namespace terse {

// Logistic regression (Yu et al. 2019, Double Quantization, section 5.1): one logit, x . w + b, for the loss
// bce_with_logits; starts at zero. Reads spec.inputs (default: 123, a9a's features).
ModelDefinition Logistic(const ModelSpec& spec);

// The 3-layer perceptron of the same paper's section 5.2: inputs -> 100, ReLU -> classes. 79,510 parameters on MNIST.
// Reads spec.inputs (default: 784) and spec.classes (default: 10).
ModelDefinition Perceptron(const ModelSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_DENSE_NETS_H_
