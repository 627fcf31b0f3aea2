#include "fleetx/data/translation.h"

#include <algorithm>
#include <numeric>

#include "fleetx/base/error.h"
#include "fleetx/base/log.h"
#include "fleetx/data/bpe.h"

namespace fleetx::data {

// Adds pairs of lines.
struct TranslationPairs::Reader {
  const Tokenizer& source;
  const Tokenizer& target;
  const TranslationOptions& options;
  TranslationPairs& to;

  // `lines` is where a message says that it comes from.
  void add(std::string_view from, std::string_view into, const std::string& file,
           TextLines& lines) {
    const std::string_view texts[2] = {from, into};
    const Tokenizer* const tokenizers[2] = {&source, &target};
    const size_t before = to.tokens_.size();
    Pair pair{};
    for (int i = 0; i < 2; ++i) {
      pair.begin[i] = static_cast<int64_t>(to.tokens_.size());
      tokenizers[i]->encode(texts[i], to.tokens_);
      pair.length[i] =
          static_cast<int32_t>(static_cast<int64_t>(to.tokens_.size()) - pair.begin[i]);
    }
    if (pair.length[0] == 0 || pair.length[1] == 0) {
      lines.bad_line(str("the ", pair.length[0] == 0 ? "source" : "target", " is empty"));
      to.tokens_.resize(before);
      return;
    }
    const auto most = static_cast<int32_t>(options.max_length - 1);
    if (std::max(pair.length[0], pair.length[1]) > most) {
      check_file(options.long_lines != BadText::kStop, file, ":", lines.number(), ": a pair of ",
                 pair.length[0], " and ", pair.length[1], " tokens; at most ", most,
                 " (long_lines=skip leaves such out, long_lines=replace cuts them)");
      if (to.long_lines_++ == 0) to.first_long_ = str(file, ":", lines.number());
      if (options.long_lines == BadText::kSkip) {
        to.tokens_.resize(before);
        return;
      }
      for (int32_t& length : pair.length) length = std::min(length, most);
    }
    to.pairs_.push_back(pair);
  }
};

TranslationPairs::TranslationPairs(const Tokenizer& source, const Tokenizer& target,
                                   const TranslationOptions& options) {
  check_arg(options.max_length >= 2, "max_length is ", options.max_length, "; must be at least 2");
  Reader reader{source, target, options, *this};
  if (options.target.empty())
    read_one_file(reader, options);
  else
    read_two_files(reader, options);
  if (long_lines_ > 0 && options.long_lines == BadText::kSkip)
    log::warning("text", long_lines_, " pairs of more than ", options.max_length - 1,
                 " tokens left out; the first: ", first_long_);
  check_file(!pairs_.empty(), options.source, ": no pairs of lines");
}

void TranslationPairs::read_one_file(Reader& reader, const TranslationOptions& o) {
  TextLines lines(o.source, o.bad_lines);
  while (lines.next()) {
    const std::string_view line = lines.line();
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos) {
      lines.bad_line("expected source, a tab, and target");
      continue;
    }
    reader.add(line.substr(0, tab), line.substr(tab + 1), o.source, lines);
  }
  lines.warn();
  bad_lines_ = lines.bad();
}

void TranslationPairs::read_two_files(Reader& reader, const TranslationOptions& o) {
  TextLines from(o.source, o.bad_lines), into(o.target, o.bad_lines);
  bool more_from = from.next(), more_into = into.next();
  // A line that one side has left out is left out on the other side, too.
  while (more_from && more_into) {
    if (from.number() == into.number()) reader.add(from.line(), into.line(), o.source, from);
    const int64_t a = from.number(), b = into.number();
    if (a <= b) more_from = from.next();
    if (b <= a) more_into = into.next();
  }
  while (more_from) more_from = from.next();
  while (more_into) more_into = into.next();
  check_file(from.number() == into.number(), o.source, " has ", from.number(), " lines, but ",
             o.target, " has ", into.number(), "; lines of the same number belong together");
  from.warn();
  into.warn();
  bad_lines_ = from.bad() + into.bad();
}

TranslationBatches::TranslationBatches(std::shared_ptr<const TranslationPairs> pairs,
                                       const Vocabulary& source, const Vocabulary& target,
                                       const TextBatchOptions& options)
    : TextBatches(options),
      pairs_(std::move(pairs)),
      source_end_(source.at(kEnd, "the end of a source")),
      target_begin_(target.at(kBegin, "the begin of a target")),
      target_end_(target.at(kEnd, "the end of a target")) {
  begin_pass(0);
}

std::vector<int32_t> TranslationBatches::prepare(int64_t) {
  std::vector<int32_t> lengths;
  for (int64_t i = 0; i < pairs_->size(); ++i)
    lengths.push_back(
        static_cast<int32_t>(std::max(pairs_->source(i).size(), pairs_->target(i).size()) + 1));
  return lengths;
}

Batch TranslationBatches::make(const LengthBatch& batch) const {
  size_t longest[2] = {0, 0};
  for (const int64_t i : batch.samples) {
    longest[0] = std::max(longest[0], pairs_->source(i).size() + 1);
    longest[1] = std::max(longest[1], pairs_->target(i).size() + 1);
  }
  const auto padded = [this](size_t n) {
    return (static_cast<int64_t>(n) + multiple() - 1) / multiple() * multiple();
  };
  const int64_t rows = static_cast<int64_t>(batch.samples.size()), s = padded(longest[0]),
                t = padded(longest[1]);
  const Tensor src(DType::kI64, {rows, s}), src_pos(DType::kI64, {rows, s}),
      src_mask(DType::kF32, {rows, 1, 1, s}), trg(DType::kI64, {rows, t}),
      trg_pos(DType::kI64, {rows, t}), label(DType::kI64, {rows, t, 1}),
      weight(DType::kF32, {rows, t, 1});
  std::ranges::fill(src.data<int64_t>(), source_end_);
  std::ranges::fill(trg.data<int64_t>(), target_end_);
  std::ranges::fill(label.data<int64_t>(), target_end_);
  for (int64_t r = 0; r < rows; ++r) {
    const auto from = pairs_->source(batch.samples[static_cast<size_t>(r)]);
    const auto into = pairs_->target(batch.samples[static_cast<size_t>(r)]);
    const auto row = [r](const auto& values, int64_t width) { return values.begin() + r * width; };
    std::ranges::copy(from, row(src.data<int64_t>(), s));
    std::iota(row(src_pos.data<int64_t>(), s), row(src_pos.data<int64_t>(), s) + s, int64_t{0});
    const auto hidden = row(src_mask.data<float>(), s);
    std::fill(hidden + static_cast<int64_t>(from.size()) + 1, hidden + s, kHiddenScore);
    *row(trg.data<int64_t>(), t) = target_begin_;
    std::ranges::copy(into, row(trg.data<int64_t>(), t) + 1);
    std::iota(row(trg_pos.data<int64_t>(), t), row(trg_pos.data<int64_t>(), t) + t, int64_t{0});
    std::ranges::copy(into, row(label.data<int64_t>(), t));
    std::fill_n(row(weight.data<float>(), t), into.size() + 1, 1.0f);
  }
  return {rows,
          {{"src_word", src},
           {"src_pos", src_pos},
           {"src_mask", src_mask},
           {"trg_word", trg},
           {"trg_pos", trg_pos},
           {"lbl_word", label},
           {"lbl_weight", weight}}};
}

// The side that has more tokens fills its part of a pack, and the other one, too: it is as much
// smaller.
Demands TranslationBatches::demands(int64_t tokens) {
  Demands out{.token_kinds = 2};
  double all[2] = {0, 0};
  for (int64_t i = 0; i < pairs_->size(); ++i) {
    const auto from = static_cast<int32_t>(pairs_->source(i).size() + 1),
               into = static_cast<int32_t>(pairs_->target(i).size() + 1);
    out.of_samples.insert(out.of_samples.end(), {from, into, 1});
    all[0] += from;
    all[1] += into;
  }
  if (capacity_.empty()) {
    const double share = static_cast<double>(tokens) / std::max(all[0], all[1]);
    capacity_ = {std::min(tokens, rounded_up(share * all[0])),
                 std::min(tokens, rounded_up(share * all[1])),
                 rounded_up(1.5 * share * static_cast<double>(pairs_->size()))};
  }
  out.capacity = capacity_;
  return out;
}

Batch TranslationBatches::make_pack(const std::vector<int64_t>& samples) const {
  const int64_t s = capacity_[0], t = capacity_[1], n = capacity_[2];
  const Tensor src(DType::kI64, {1, s}), src_pos(DType::kI64, {1, s}), src_len(DType::kI64, {n}),
      trg(DType::kI64, {1, t}), trg_pos(DType::kI64, {1, t}), trg_len(DType::kI64, {n}),
      label(DType::kI64, {1, t, 1}), weight(DType::kF32, {1, t, 1});
  std::ranges::fill(src.data<int64_t>(), source_end_);
  std::ranges::fill(trg.data<int64_t>(), target_end_);
  std::ranges::fill(label.data<int64_t>(), target_end_);
  int64_t at[2] = {0, 0};
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto from = pairs_->source(samples[i]), into = pairs_->target(samples[i]);
    const auto put = [](const auto& words, const Tensor& to, int64_t first) {
      std::ranges::copy(words, to.data<int64_t>().begin() + first);
    };
    const auto count = [](const Tensor& to, int64_t first, int64_t length) {
      const auto begin = to.data<int64_t>().begin() + first;
      std::iota(begin, begin + length, int64_t{0});
    };
    const auto from_length = static_cast<int64_t>(from.size()) + 1,
               into_length = static_cast<int64_t>(into.size()) + 1;
    put(from, src, at[0]);
    count(src_pos, at[0], from_length);
    trg.data<int64_t>()[static_cast<size_t>(at[1])] = target_begin_;
    put(into, trg, at[1] + 1);
    put(into, label, at[1]);
    count(trg_pos, at[1], into_length);
    std::fill_n(weight.data<float>().begin() + at[1], into_length, 1.0f);
    src_len.data<int64_t>()[i] = from_length;
    trg_len.data<int64_t>()[i] = into_length;
    at[0] += from_length;
    at[1] += into_length;
  }
  return {static_cast<int64_t>(samples.size()),
          {{"src_word", src},
           {"src_pos", src_pos},
           {"src_len", src_len},
           {"trg_word", trg},
           {"trg_pos", trg_pos},
           {"trg_len", trg_len},
           {"lbl_word", label},
           {"lbl_weight", weight}}};
}

}  // namespace fleetx::data
