// chunk_eval: how many chunks of a tagging are right. inference and label are i64 [N] tags of the
// sequences that `starts` and `lengths` name; tag = type * (tags of a type) + place in the chunk,
// and type num_chunk_types is outside of all chunks. What marks a chunk of one type (chunk_scheme):
//   plain: its tags are all the same   IOB: begin 0, inside 1   IOE: inside 0, end 1
//   IOBES: begin 0, inside 1, end 2, alone 3
// A chunk is right where begin, end and type are those of a label's chunk. Types of
// excluded_chunk_types do not count. precision = right / found, recall = right / labelled, f1 their
// harmonic mean: f32 [1], 0 where nothing is right; the three numbers: i64 [1]. No gradient.
#include <algorithm>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/recurrence.h"

namespace fleetx::ops {
namespace {

// Tags of a type by their meaning; -1: the scheme has none.
struct Scheme {
  std::string_view name;
  int64_t tags, begin, inside, end, alone;
};
constexpr Scheme kSchemes[] = {{"plain", 1, -1, -1, -1, -1},
                               {"IOB", 2, 0, 1, -1, -1},
                               {"IOE", 2, -1, 0, 1, -1},
                               {"IOBES", 4, 0, 1, 2, 3}};

const Scheme* find_scheme(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSchemes), std::end(kSchemes),
                                   [&](const Scheme& s) { return s.name == name; });
  return found == std::end(kSchemes) ? nullptr : found;
}

void infer(ir::Infer& c) {
  for (const char* slot : {"inference", "label"})
    c.check(c.in(slot).dtype == i64 && c.in(slot).shape.rank() == 1, c.show(slot),
            "; must be i64 [rows]");
  c.check(c.in("inference") == c.in("label"), c.show("inference"), ", but ", c.show("label"));
  check_sequences(c);
  const auto scheme = c.attr<std::string>("chunk_scheme");
  c.check(find_scheme(scheme) != nullptr, "chunk_scheme must be plain, IOB, IOE or IOBES, got '",
          scheme, "'");
  c.check(c.attr<int64_t>("num_chunk_types") > 0, "num_chunk_types must be above 0, got ",
          c.attr<int64_t>("num_chunk_types"));
  for (const char* slot : {"precision", "recall", "f1"}) c.out(slot) = {f32, {1}};
  for (const char* slot : {"found", "labelled", "right"}) c.out(slot) = {i64, {1}};
}

class ChunkEval final : public kernel::Kernel {
 public:
  explicit ChunkEval(kernel::Prepare& p)
      : sequences_(p, p.in("label").numel(), false),
        scheme_(*find_scheme(p.attr<std::string>("chunk_scheme"))),
        types_(p.attr<int64_t>("num_chunk_types")),
        excluded_(p.attr<ir::Ints>("excluded_chunk_types")),
        inference_(p.input("inference")),
        label_(p.input("label")),
        precision_(p.output("precision")),
        recall_(p.output("recall")),
        f1_(p.output("f1")),
        found_(p.output("found")),
        labelled_(p.output("labelled")),
        right_(p.output("right")),
        where_(ir::describe(p.op())) {}

  void run(const kernel::Run& r) override {
    const Sequences::Sorted s = sequences_.sorted(r);
    int64_t found = 0, labelled = 0, right = 0;
    for (int64_t i = 0; i < sequences_.count(); ++i) {
      if (s.length(i) == 0) continue;
      const int64_t begin = s.row(i, 0), n = s.length(i);
      const int64_t *a = r.in<int64_t>(inference_) + begin, *b = r.in<int64_t>(label_) + begin;
      // Both taggings are read along together: the next chunk of each.
      Chunk x = next(a, 0, n), y = next(b, 0, n);
      while (x.type >= 0 || y.type >= 0) {
        if (x == y && counts(x)) ++right;
        const bool step_x = x.type >= 0 && (y.type < 0 || x.begin <= y.begin);
        const bool step_y = y.type >= 0 && (x.type < 0 || y.begin <= x.begin);
        if (step_x) {
          found += counts(x) ? 1 : 0;
          x = next(a, x.end, n);
        }
        if (step_y) {
          labelled += counts(y) ? 1 : 0;
          y = next(b, y.end, n);
        }
      }
    }
    const auto share = [](double part, double all) { return all > 0 ? part / all : 0.0; };
    const auto hits = static_cast<double>(right);
    const double precision = share(hits, static_cast<double>(found));
    const double recall = share(hits, static_cast<double>(labelled));
    *r.out<float>(precision_) = static_cast<float>(precision);
    *r.out<float>(recall_) = static_cast<float>(recall);
    *r.out<float>(f1_) = static_cast<float>(share(2 * precision * recall, precision + recall));
    *r.out<int64_t>(found_) = found;
    *r.out<int64_t>(labelled_) = labelled;
    *r.out<int64_t>(right_) = right;
  }

 private:
  struct Chunk {
    int64_t begin, end, type;  // rows begin .. end - 1; type -1: there is none
    bool operator==(const Chunk&) const = default;
  };

  int64_t type(const int64_t* tags, int64_t i) const {
    check_arg(tags[i] >= 0 && tags[i] <= types_ * scheme_.tags, where_, "tag ", tags[i],
              " is not in 0 .. ", types_ * scheme_.tags);
    return tags[i] / scheme_.tags;
  }

  // Does a chunk of one type go on from a tag to the next one, which is of the same type?
  bool goes_on(int64_t from, int64_t to) const {
    if (from % scheme_.tags == scheme_.end || from % scheme_.tags == scheme_.alone) return false;
    return to % scheme_.tags != scheme_.begin && to % scheme_.tags != scheme_.alone;
  }

  // The first chunk that begins at row `from` or later.
  Chunk next(const int64_t* tags, int64_t from, int64_t n) const {
    while (from < n && type(tags, from) == types_) ++from;
    if (from == n) return {0, 0, -1};
    const int64_t kind = type(tags, from);
    int64_t end = from + 1;
    while (end < n && type(tags, end) == kind && goes_on(tags[end - 1], tags[end])) ++end;
    return {from, end, kind};
  }

  bool counts(const Chunk& c) const {
    return std::find(excluded_.begin(), excluded_.end(), c.type) == excluded_.end();
  }

  Sequences sequences_;
  const Scheme& scheme_;
  int64_t types_;
  ir::Ints excluded_;
  kernel::Slot inference_, label_, precision_, recall_, f1_, found_, labelled_, right_;
  std::string where_;
};

FLEETX_OP(chunk_eval)
    .input("inference")
    .input("label")
    .input("starts")
    .input("lengths")
    .output("precision")
    .output("recall")
    .output("f1")
    .output("found")
    .output("labelled")
    .output("right")
    .attr("chunk_scheme", "IOB")
    .attr("num_chunk_types", 1)
    .attr("excluded_chunk_types", ir::Ints{})
    .infer(infer)
    .kernel<ChunkEval>();

}  // namespace
}  // namespace fleetx::ops
