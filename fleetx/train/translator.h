// Translations by a trained Transformer (models/transformer.h): a greedy or beam search over
// programs for inference that are made here and read the parameters of a scope. Sentences are
// encoded once; every step computes one word of each translation, from kept keys and values.
//
//   Translator translator(options, scope, {.source_end = 1, .target_begin = 0, .target_end = 1});
//   auto best = translator.translate(sentences, {.beams = 4});
//
// Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "fleetx/models/transformer.h"
#include "fleetx/runtime/executor.h"

namespace fleetx::train {

struct TranslateOptions {
  int beams = 4;  // 1: greedy
  // Of finished translations the one with the highest sum of log probabilities, divided by
  // ((5 + length) / 6)^length_penalty, is the best (Wu et al. 2016).
  double length_penalty = 0.6;
  int64_t max_length = 256;  // words of a translation, at most
  int64_t batch = 64;        // sentences that are translated together
};

struct Translation {
  std::vector<int32_t> words;  // without <s> and <e>
  double score = 0;            // as the penalty has it
};

class Translator {
 public:
  struct Marks {
    int32_t source_end, target_begin, target_end;
    // Words that there are, where the model has room for more; 0: as many as it has.
    int64_t target_words = 0;
  };

  // The parameters are read from `scope`, which must outlive this, at every call.
  Translator(models::TransformerOptions model, runtime::Scope& scope, Marks marks);
  Translator(const Translator&) = delete;
  Translator& operator=(const Translator&) = delete;
  ~Translator();

  // The best translation of each sentence, a list of words without <e>. An empty one is
  // kInvalidArgument.
  std::vector<Translation> translate(const std::vector<std::vector<int32_t>>& sentences,
                                     const TranslateOptions& options);

 private:
  struct Encoder;
  struct Step;
  struct Batch;
  Step& step_for(int beams);
  std::vector<Translation> translate_batch(const std::vector<const std::vector<int32_t>*>& part,
                                           const TranslateOptions& options);

  models::TransformerOptions model_;
  runtime::Scope& scope_;
  Marks marks_;
  runtime::Executor executor_;
  std::unique_ptr<Encoder> encoder_;
  std::map<int, std::unique_ptr<Step>> steps_;  // by beams
};

}  // namespace fleetx::train
