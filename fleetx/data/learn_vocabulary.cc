#include "fleetx/data/learn_vocabulary.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/data/learn_merges.h"
#include "fleetx/data/utf8.h"
#include "fleetx/data/words.h"

namespace fleetx::data {
namespace {

const std::vector<std::string> kBertSpecials{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

std::vector<std::string> characters_of(std::string_view word) {
  std::vector<std::string> out;
  for (const char* at = word.data(); at < word.data() + word.size();) {
    const char* const begin = at;
    next_code_point(at);
    out.emplace_back(begin, at);
  }
  return out;
}

// The most frequent ones; of equally frequent ones those with the smaller numbers.
std::set<std::string> alphabet_of(const WordCounts& words, int64_t most) {
  std::map<std::string, int64_t> counts;
  for (const auto& [word, count] : words)
    for (const std::string& c : characters_of(word)) counts[c] += count;
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [c, count] : counts) order.emplace_back(-count, c);
  std::ranges::sort(order);
  if (static_cast<int64_t>(order.size()) > most) order.resize(static_cast<size_t>(most));
  std::set<std::string> alphabet;
  for (auto& [count, c] : order) alphabet.insert(std::move(c));
  return alphabet;
}

}  // namespace

WordCounts count_words(const std::vector<std::string>& files, const CountOptions& options) {
  const Characters characters(options.characters);
  std::unordered_map<std::string, int64_t> counts;
  const auto count = [&](std::string_view word) { ++counts[std::string(word)]; };
  std::string spaced;
  const auto without_tabs = [&](std::string_view line) {
    spaced = line;
    std::ranges::replace(spaced, '\t', ' ');
    return std::string_view(spaced);
  };
  for (const std::string& file : files) {
    TextLines lines(file, options.policy);
    while (lines.next()) {
      if (options.rule == WordRule::kBert)
        for_each_word(lines.line(), characters, count);
      else
        for_each_between_spaces(
            options.rule == WordRule::kTabs ? without_tabs(lines.line()) : lines.line(), count);
    }
    lines.warn();
  }
  check_file(!counts.empty(), files.empty() ? "no files" : join(files, ", "),
             ": no words to learn from");
  return {counts.begin(), counts.end()};
}

Vocabulary learn_wordpiece(const WordCounts& words, const WordPieceTraining& o) {
  const std::set<std::string> alphabet = alphabet_of(words, o.alphabet);
  std::vector<CountedWord> counted;
  std::set<std::string> first, inside;
  for (const auto& [word, count] : words) {
    CountedWord w{characters_of(word), count};
    const auto known = [&](const std::string& c) { return alphabet.contains(c); };
    if (!std::ranges::all_of(w.symbols, known)) continue;
    for (size_t i = 1; i < w.symbols.size(); ++i) w.symbols[i].insert(0, "##");
    first.insert(w.symbols[0]);
    inside.insert(w.symbols.begin() + 1, w.symbols.end());
    counted.push_back(std::move(w));
  }
  std::vector<std::string> tokens = kBertSpecials;
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.insert(tokens.end(), inside.begin(), inside.end());
  const int64_t rest = o.size - static_cast<int64_t>(tokens.size());
  check_arg(rest >= 0, "a vocabulary of ", o.size, " tokens has no room for ", tokens.size(),
            " special tokens and characters; make it larger or the alphabet smaller");
  const auto joined = [](const std::string& a, const std::string& b) { return a + b.substr(2); };
  // Two merges may make the same token, so that more of them may be needed than there is room for.
  std::set<std::string> known(tokens.begin(), tokens.end());
  for (const auto& [a, b] :
       learn_merges(counted, {.merges = 2 * rest, .min_count = o.min_count, .join = joined})) {
    if (static_cast<int64_t>(tokens.size()) == o.size) break;
    if (known.insert(joined(a, b)).second) tokens.push_back(joined(a, b));
  }
  return Vocabulary(std::move(tokens), "learned vocabulary");
}

BpeCodes learn_bpe(const WordCounts& words, int64_t merges, int64_t min_count) {
  check_arg(merges >= 1, "merges is ", merges, "; must be positive");
  std::vector<CountedWord> counted;
  for (const auto& [word, count] : words) {
    CountedWord& w = counted.emplace_back(CountedWord{characters_of(word), count});
    w.symbols.back() += kWordEnd;
  }
  BpeCodes codes{.merges = learn_merges(counted, {.merges = merges, .min_count = min_count})};
  check_arg(!codes.merges.empty(), "no two characters are met ", min_count,
            " times beside each other in a word: there is nothing to merge; give more text");
  return codes;
}

std::string bpe_vocabulary_text(const WordCounts& words, const BpeCodes& codes) {
  const Bpe bpe(codes, {});
  std::map<std::string, int64_t> counts;
  for (const auto& [word, count] : words)
    for_each_between_spaces(bpe.segment(word), [&, n = count](std::string_view piece) {
      counts[std::string(piece)] += n;
    });
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [token, count] : counts) order.emplace_back(-count, token);
  std::ranges::sort(order);
  std::string text;
  for (const auto& [count, token] : order) text += str(token, " ", -count, "\n");
  return text;
}

}  // namespace fleetx::data
