// Language models of recurrent layers: the next symbol of a text from the symbols before it. All take symbols
// [batch, time] and carry the hidden state from one piece of a text to the next.
#ifndef TERSE_LEARNING_MODELS_LSTM_LANGUAGE_H_
#define TERSE_LEARNING_MODELS_LSTM_LANGUAGE_H_

#include "learning/models/model.h"

namespace terse {

// Each model reads spec.classes (symbols) and spec.dropout.

// SBC's WordLSTM (Sattler et al. 2018, supplement VII-C): TensorFlow's Penn Treebank tutorial, configuration "medium".
// Embedding of 650, two layers of 650, dropout 0.5 before, between and after them, all weights uniform in +-0.05.
// 19,775,200 parameters with 10,000 words.
ModelDefinition WordLstm(const ModelSpec& spec);

// SBC's CharLSTM: the same with two layers of 200 and an embedding as wide. 680,898 parameters with 98 symbols.
ModelDefinition CharLstm(const ModelSpec& spec);

// MCGQ's model of the Penn Treebank (Mordido et al. 2020, section 4.3.1, after Merity et al. 2017): embedding of 1,430,
// layers of 1,500 and 1,430, the output's weights are the embedding's. 48,673,040 parameters with 10,000 words, which
// is the 194.69 MB of its Table 3.
ModelDefinition PtbLstm1500(const ModelSpec& spec);

// MCGQ's model of Shakespeare (section 4.3.2, after char-rnn): one-hot symbols, two layers of 512. 3,320,385 parameters
// with 65 symbols, which is the 13.28 MB of its Table 4.
ModelDefinition CharRnn512(const ModelSpec& spec);

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_LSTM_LANGUAGE_H_
