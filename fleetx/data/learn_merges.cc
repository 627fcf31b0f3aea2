#include "fleetx/data/learn_merges.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"

namespace fleetx::data {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& p) const {
    return mix(static_cast<uint32_t>(p.first), static_cast<uint32_t>(p.second));
  }
};

struct Word {
  std::vector<int32_t> symbols;
  int64_t count;
};

struct Known {
  int64_t count = 0;
  std::vector<uint32_t> words;  // in which it occurs or has occurred, some several times
};

class Learner {
 public:
  Learner(const std::vector<CountedWord>& words, const MergeOptions& options) : options_(options) {
    words_.reserve(words.size());
    for (const CountedWord& w : words) {
      Word& word = words_.emplace_back(Word{{}, w.count});
      for (const std::string& symbol : w.symbols) word.symbols.push_back(id_of(symbol));
    }
    for (uint32_t i = 0; i < words_.size(); ++i) add_pairs(i, words_[i].count);
    for (const auto& [pair, known] : pairs_) queue_.push({known.count, pair, this});
    changed_.clear();
  }

  std::vector<std::pair<std::string, std::string>> run() {
    std::vector<std::pair<std::string, std::string>> merges;
    while (static_cast<int64_t>(merges.size()) < options_.merges && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t now = pairs_.at(best.pair).count;
      if (now != best.count) {  // has become rarer since it was queued
        if (now > 0) queue_.push({now, best.pair, this});
        continue;
      }
      if (now < options_.min_count) break;
      merges.emplace_back(symbols_[static_cast<size_t>(best.pair.first)],
                          symbols_[static_cast<size_t>(best.pair.second)]);
      merge(best.pair);
    }
    return merges;
  }

 private:
  struct Candidate {
    int64_t count;
    Pair pair;
    const Learner* learner;
    bool operator<(const Candidate& o) const {
      if (count != o.count) return count < o.count;
      return learner->texts_of(pair) < learner->texts_of(o.pair);
    }
  };

  std::pair<const std::string&, const std::string&> texts_of(const Pair& p) const {
    return {symbols_[static_cast<size_t>(p.first)], symbols_[static_cast<size_t>(p.second)]};
  }

  int32_t id_of(const std::string& symbol) {
    const auto [found, is_new] = ids_.emplace(symbol, static_cast<int32_t>(symbols_.size()));
    if (is_new) symbols_.push_back(symbol);
    return found->second;
  }

  // Adds the pairs of a word `count` times; less than 0 takes them away.
  void add_pairs(uint32_t index, int64_t count) {
    const std::vector<int32_t>& s = words_[index].symbols;
    for (size_t i = 0; i + 1 < s.size(); ++i) {
      const Pair pair{s[i], s[i + 1]};
      Known& known = pairs_[pair];
      known.count += count;
      if (count < 0) continue;
      if (known.words.empty() || known.words.back() != index) known.words.push_back(index);
      changed_.push_back(pair);
    }
  }

  void merge(const Pair& pair) {
    const auto texts = texts_of(pair);
    const int32_t joined = id_of(options_.join(texts.first, texts.second));
    std::vector<uint32_t> places = std::exchange(pairs_.at(pair).words, {});
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    changed_.clear();
    for (const uint32_t index : places) {
      Word& word = words_[index];
      add_pairs(index, -word.count);
      join_in(word.symbols, pair, joined);
      add_pairs(index, word.count);
    }
    // What has become more frequent has to be found; what has become rarer is noticed on top.
    std::ranges::sort(changed_);
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const Pair& p : changed_)
      if (p.first == joined || p.second == joined) queue_.push({pairs_.at(p).count, p, this});
  }

  static void join_in(std::vector<int32_t>& symbols, const Pair& pair, int32_t joined) {
    size_t to = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool here =
          symbols[i] == pair.first && i + 1 < symbols.size() && symbols[i + 1] == pair.second;
      symbols[to++] = here ? joined : symbols[i];
      i += here;
    }
    symbols.resize(to);
  }

  const MergeOptions& options_;
  std::vector<std::string> symbols_;  // by their numbers
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Word> words_;
  std::unordered_map<Pair, Known, PairHash> pairs_;
  std::vector<Pair> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> learn_merges(const std::vector<CountedWord>& words,
                                                              const MergeOptions& options) {
  check_arg(options.min_count >= 1, "min_count is ", options.min_count, "; must be positive");
  check_arg(words.size() <= UINT32_MAX, words.size(), " different words; at most 2^32");
  return Learner(words, options).run();
}

}  // namespace fleetx::data
