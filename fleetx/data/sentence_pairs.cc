#include "fleetx/data/sentence_pairs.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/data/masking.h"

namespace fleetx::data {
namespace {

// The numbers of one document in one epoch, one after the other.
class Draws {
 public:
  Draws(uint64_t seed, int64_t epoch, int64_t document)
      : random_(seed, mix(mix(stable_hash("sentence pairs"), static_cast<uint64_t>(epoch)),
                          static_cast<uint64_t>(document))) {}
  uint32_t bits() { return random_.bits(next_++); }
  bool happens(double probability) { return Philox::to_unit(bits()) < probability; }
  int64_t in(int64_t first, int64_t last) {  // both may be drawn
    return first + below(bits(), static_cast<uint64_t>(last - first + 1));
  }

 private:
  Philox random_;
  uint64_t next_ = 0;
};

class DocumentPairs {
 public:
  DocumentPairs(const TextCorpus& corpus, const PairOptions& options, int64_t epoch,
                int64_t document)
      : corpus_(corpus),
        options_(options),
        document_(document),
        draws_(options.seed, epoch, document) {}

  void add_to(std::vector<SentencePair>& pairs) {
    const int64_t end = corpus_.first_sentence(document_ + 1);
    for (int64_t begin = corpus_.first_sentence(document_); begin < end;) {
      const int64_t target = options_.fill ? draw_target() : 1;
      int64_t last = begin + 1;  // sentences [begin, last)
      while (last < end && corpus_.count_tokens(begin, last) < target) ++last;
      if (!options_.fill) last = std::min(begin + 2, end);
      const int64_t middle = last - begin == 1 ? last : begin + draws_.in(1, last - begin - 1);
      SentencePair pair;
      pair.first = part(begin, middle);
      const bool other = middle == last || draws_.happens(0.5);
      pair.follows = !other;
      pair.second = other ? elsewhere(target - pair.first.length) : part(middle, last);
      cut(pair);
      pairs.push_back(pair);
      begin = other ? middle : last;
    }
  }

 private:
  Part part(int64_t first, int64_t last) const {
    return {first, 0, static_cast<int32_t>(corpus_.count_tokens(first, last))};
  }

  int64_t draw_target() {
    const int64_t most = options_.max_length - 3;
    return draws_.happens(options_.short_rate) ? draws_.in(2, most) : most;
  }

  // Sentences of another document, from a random one on, of about `tokens` tokens.
  Part elsewhere(int64_t tokens) {
    int64_t other = draws_.in(0, corpus_.documents() - 2);
    other += other >= document_;
    const int64_t end = corpus_.first_sentence(other + 1);
    const int64_t begin = draws_.in(corpus_.first_sentence(other), end - 1);
    int64_t last = begin + 1;
    while (last < end && corpus_.count_tokens(begin, last) < tokens) ++last;
    return part(begin, last);
  }

  void cut(SentencePair& pair) {
    for (int64_t over = pair.length() - options_.max_length; over > 0; --over) {
      Part& longer = pair.first.length > pair.second.length ? pair.first : pair.second;
      if (draws_.happens(0.5)) ++longer.skip;
      --longer.length;
    }
  }

  const TextCorpus& corpus_;
  const PairOptions& options_;
  int64_t document_;
  Draws draws_;
};

}  // namespace

std::vector<SentencePair> sentence_pairs(const TextCorpus& corpus, const PairOptions& options,
                                         int64_t epoch) {
  check_arg(options.max_length >= 5, "max_length is ", options.max_length,
            "; a pair with [CLS] and two [SEP] has at least 5 tokens");
  check_arg(
      corpus.documents() >= 2, corpus.name(),
      ": next-sentence pairs need at least two documents, with an empty line between; there is ",
      corpus.documents());
  std::vector<SentencePair> pairs;
  for (int64_t d = 0; d < corpus.documents(); ++d)
    DocumentPairs(corpus, options, epoch, d).add_to(pairs);
  return pairs;
}

}  // namespace fleetx::data
