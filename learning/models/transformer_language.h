// Language models of attention layers: the next symbol of a text from the symbols before it in the same window. They
// take symbols [batch, time], of any length, and carry no state from window to window.
#ifndef TERSE_LEARNING_MODELS_TRANSFORMER_LANGUAGE_H_
#define TERSE_LEARNING_MODELS_TRANSFORMER_LANGUAGE_H_

#include "learning/models/model.h"

namespace terse {

// A decoder of the kind that is pre-trained with DiLoCo and SparseLoCo, small enough for a processor: layers as in
// GPT-2 (Radford et al. 2019) with normalisation before attention and before the perceptron of four times the width,
// GELU, and the output's weights those of the embedding. Positions are a bias on the attention that falls linearly with
// the distance, with slopes 2^(-8 h / heads) (Press, Smith, Lewis 2022, ALiBi), so that no weight depends on the length
// of a window. Weights start normal with a deviation of 0.02, those that end in a residual sum 1/sqrt(2 layers) of
// that.
//
// Both read spec.classes (symbols; 256, which are bytes, unless set) and spec.dropout (0).

// 8 layers of 256, 8 heads. 6,384,128 parameters with 256 symbols.
ModelDefinition Transformer(const ModelSpec& spec);

// 2 layers of 64, 4 heads, for a try. 116,480 parameters with 256 symbols.
ModelDefinition TransformerSmall(const ModelSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_TRANSFORMER_LANGUAGE_H_
