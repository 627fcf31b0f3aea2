#include "fleetx/train/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "fleetx/base/error.h"

namespace fleetx::train {
namespace {

using Counts = std::map<std::vector<std::string>, int64_t>;

Counts runs(const Sentence& s, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= s.size(); ++i)
    ++counts[Sentence(s.begin() + static_cast<std::ptrdiff_t>(i),
                      s.begin() + static_cast<std::ptrdiff_t>(i + n))];
  return counts;
}

}  // namespace

Bleu bleu(const std::vector<Sentence>& candidates, const std::vector<Sentence>& references) {
  check_arg(!candidates.empty() && candidates.size() == references.size(),
            "bleu: ", candidates.size(), " translations and ", references.size(),
            " references; must be as many, and at least one");
  double length = 0, wanted = 0;
  std::array<double, 4> found{}, all{};
  for (size_t i = 0; i < candidates.size(); ++i) {
    length += static_cast<double>(candidates[i].size());
    wanted += static_cast<double>(references[i].size());
    for (size_t n = 0; n < 4; ++n) {
      const Counts known = runs(references[i], n + 1);
      for (const auto& [run, count] : runs(candidates[i], n + 1)) {
        const auto it = known.find(run);
        found[n] += static_cast<double>(it == known.end() ? 0 : std::min(count, it->second));
        all[n] += static_cast<double>(count);
      }
    }
  }
  Bleu out;
  double logs = 0;
  for (size_t n = 0; n < 4; ++n) {
    out.precisions[n] = all[n] == 0 ? 1 : found[n] / all[n];
    logs += std::log(out.precisions[n]) / 4;
  }
  if (length < wanted) out.brevity = length == 0 ? 0 : std::exp(1 - wanted / length);
  out.score = 100 * out.brevity * std::exp(logs);
  return out;
}

}  // namespace fleetx::train
