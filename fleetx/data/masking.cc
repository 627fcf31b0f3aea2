#include "fleetx/data/masking.h"

#include <algorithm>
#include <cmath>

#include "fleetx/base/error.h"

namespace fleetx::data {

Masking::Masking(const Vocabulary& vocabulary, double rate)
    : rate_(rate),
      vocabulary_(vocabulary.size()),
      pad_(vocabulary.at("[PAD]", "padding")),
      cls_(vocabulary.at("[CLS]", "the begin of a sample")),
      sep_(vocabulary.at("[SEP]", "the end of a sentence")),
      mask_(vocabulary.at("[MASK]", "masking")),
      special_{pad_, cls_, sep_, mask_} {
  check_arg(rate > 0 && rate < 1, "the rate of masked words is ", rate, "; must be in (0, 1)");
  if (const int32_t unknown = vocabulary.find("[UNK]"); unknown >= 0) special_.push_back(unknown);
  std::ranges::sort(special_);
  check_arg(vocabulary_ > static_cast<int64_t>(special_.size()), vocabulary.name(),
            ": has special tokens only");
}

int64_t Masking::count(int64_t n) const {
  return std::max<int64_t>(1, std::llround(std::floor(rate_ * static_cast<double>(n) + 0.5)));
}

int64_t Masking::any_word(uint32_t bits) const {
  int64_t id = below(bits, static_cast<uint64_t>(vocabulary_) - special_.size());
  for (const int64_t special : special_) id += id >= special;
  return id;
}

std::vector<Masking::Hidden> Masking::hide(std::span<int64_t> row, const Philox& random) const {
  std::vector<int32_t> places;
  for (size_t i = 0; i < row.size(); ++i)
    if (row[i] != pad_ && row[i] != cls_ && row[i] != sep_)
      places.push_back(static_cast<int32_t>(i));
  std::vector<Hidden> hidden;
  if (places.empty()) return hidden;
  const auto k = static_cast<size_t>(
      std::min(count(static_cast<int64_t>(places.size())), static_cast<int64_t>(places.size())));
  for (size_t i = 0; i < k; ++i) {
    // Block i: which of those that are left, what happens to it, and the word that takes its place.
    const auto bits = random.block(i);
    std::swap(places[i], places[i + below(bits[0], places.size() - i)]);
    int64_t& word = row[static_cast<size_t>(places[i])];
    hidden.push_back({places[i], static_cast<int32_t>(word)});
    const float u = Philox::to_unit(bits[1]);
    if (u < 0.8f)
      word = mask_;
    else if (u < 0.9f)
      word = any_word(bits[2]);
  }
  std::ranges::sort(hidden, {}, &Hidden::place);
  return hidden;
}

}  // namespace fleetx::data
