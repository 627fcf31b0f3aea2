// attention: scaled dot-product attention of several heads.
//   q [B, Q, heads * d], k [B, K, heads * d], v [B, K, heads * e] -> out [B, Q, heads * e]
//   for each example and head:  P = softmax(scale * q * k^T + mask),  out = P * v
// mask broadcasts to [B, heads, Q, K]; its last dimension is K. causal: query i sees the keys up to
// i + K - Q only, so the last query sees all.
// With q_lengths and k_lengths [S], i64 or i32, B is 1 and the rows of q, and of k and v, are those
// of S sequences, one after the other; sequence i of q sees sequence i of k. Rows beyond them give
// 0. No time goes into padding then, and batches of any lengths have the same shapes.
// q, k, v and out have one dtype: f32, bf16 or f16; mask is f32 or of that dtype.
// With dP = dout * v^T:  dS = P * (dP - sum over keys of P * dP),  dv = P^T * dout,
//   dq = scale * dS * k,  dk = scale * dS^T * q,  dmask = dS summed to the shape of mask.
// Heads are read where they stand, and the scores of a few queries at a time never leave the cache:
// backward computes them again, so nothing of them is kept.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/gemm.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/math.h"
#include "fleetx/ops/lib/rows.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

struct Sizes {
  int64_t batch, heads, queries, keys, d, e;

  int64_t q_row() const { return heads * d; }  // also of k
  int64_t v_row() const { return heads * e; }  // also of out
  Shape scores() const { return {batch, heads, queries, keys}; }
};

template <class Args>
Sizes sizes(const Args& args) {
  const Shape &q = args.in("q").shape, &v = args.in("v").shape;
  const auto heads = args.template attr<int64_t>("heads");
  return {q[0], heads, q[1], v[1], q[2] / heads, v[2] / heads};
}

void check_lengths(const ir::Infer& c) {
  for (const auto* slot : {"q_lengths", "k_lengths"}) {
    check_ids(c, slot);
    c.check(c.in(slot).shape.rank() == 1 && c.in(slot).shape == c.in("q_lengths").shape,
            c.show("q_lengths"), ", ", c.show("k_lengths"), "; expected one number per sequence");
  }
  c.check(c.in("q").shape[0] == 1, c.show("q"), "; with lengths, the batch must be 1");
  c.check(!c.has("mask"), "lengths and a mask cannot be combined");
}

void check(const ir::Infer& c) {
  for (const auto* slot : {"q", "k", "v"})
    c.check(is_f32_or_half(c.in(slot).dtype) && c.in(slot).dtype == c.in("q").dtype &&
                c.in(slot).shape.rank() == 3,
            c.show(slot), "; expected f32, bf16 or f16 [batch, length, heads * size], as q");
  const Shape &q = c.in("q").shape, &k = c.in("k").shape, &v = c.in("v").shape;
  const auto heads = c.attr<int64_t>("heads");
  c.check(heads > 0 && q[2] % heads == 0 && v[2] % heads == 0, c.show("q"), ", ", c.show("v"),
          "; heads is ", heads, " and must divide their width");
  c.check(k[0] == q[0] && k[2] == q[2], c.show("q"), ", ", c.show("k"),
          "; must have one batch and one width");
  c.check(v[0] == k[0] && v[1] == k[1], c.show("k"), ", ", c.show("v"),
          "; must have one batch and one length");
  c.check(k[1] > 0, c.show("k"), "; needs at least one key");
  const bool packed = c.has("q_lengths");
  c.check(packed == c.has("k_lengths"), "q_lengths and k_lengths come together");
  c.check(packed || !c.attr<bool>("causal") || k[1] >= q[1], c.show("q"), ", ", c.show("k"),
          "; causal attention needs a key for every query");
  if (packed) check_lengths(c);
  if (!c.has("mask")) return;
  const Shape &mask = c.in("mask").shape, scores = sizes(c).scores();
  const DType dtype = c.in("mask").dtype;
  bool fits = (dtype == f32 || dtype == c.in("q").dtype) && mask.rank() >= 1 && mask.rank() <= 4 &&
              mask.back() == k[1];
  for (int d = 0; fits && d < mask.rank(); ++d)
    fits = mask[d] == 1 || mask[d] == scores[d + 4 - mask.rank()];
  c.check(fits, c.show("mask"), "; expected f32, or as q, that broadcasts to ", scores,
          " and has its last dimension");
}

void infer(ir::Infer& c) {
  check(c);
  const Shape &q = c.in("q").shape, &v = c.in("v").shape;
  c.out("out") = {c.in("q").dtype, {q[0], q[1], v[2]}};
}

// Lengths are not known here: all sequences count as equally long.
double product_flops(const ir::Infer& c, int64_t of_d, int64_t of_e) {
  const Sizes s = sizes(c);
  const double sequences =
      c.has("q_lengths") ? static_cast<double>(c.in("q_lengths").shape.numel()) : 1.0;
  return 2.0 * static_cast<double>(s.scores().numel()) / std::max(sequences, 1.0) *
         static_cast<double>(of_d * s.d + of_e * s.e);
}

ir::Cost cost(const ir::Infer& c) { return {.flops = product_flops(c, 1, 1)}; }

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const auto* slot : {"q", "k", "v"})
    if (g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const bool mask = g.has("mask") && g.needs("mask");
  if (mask) dests.emplace_back("dscores", g.builder().unique_name(g.dx("mask") + "_scores"));
  const ir::Results d = g.op("attention_grad",
                             {{"q", g.in("q")},
                              {"k", g.in("k")},
                              {"v", g.in("v")},
                              {"mask", g.in("mask")},
                              {"q_lengths", g.in("q_lengths")},
                              {"k_lengths", g.in("k_lengths")},
                              {"dout", g.dout("out")}},
                             g.attrs(), dests);
  for (const auto* slot : {"q", "k", "v"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
  if (mask)
    g.set("mask", g.op("sum_to", {{"x", d["dscores"]}},
                       {{"shape", g.in("mask").shape()}, {"axis", -1}}, {{"out", g.dx("mask")}}));
}

// The mask row of a query, found by strides that are 0 where the mask broadcasts.
struct Mask {
  kernel::Slot slot;
  int64_t stride[3] = {};  // example, head, query

  explicit Mask(kernel::Prepare& p) : slot(p.input("mask")) {
    if (!slot) return;
    const Shape& shape = p.in("mask").shape;
    int64_t step = shape.back();
    for (int d = shape.rank() - 2; d >= 0; --d) {
      stride[d + 4 - shape.rank()] = shape[d] == 1 ? 0 : step;
      step *= shape[d];
    }
  }
  const float* row(const kernel::Run& r, int64_t example, int64_t head, int64_t query) const {
    const auto* mask = r.in<float>(slot);
    return mask ? mask + example * stride[0] + head * stride[1] + query * stride[2] : nullptr;
  }
};

// s = softmax(s + mask) in each row of `keys`; row i sees the first n = first + i * growth
// of them, the others get 0.
struct Visible {
  int64_t first, growth;
};
void masked_softmax(float* s, int64_t rows, int64_t keys, Visible visible, const float* mask,
                    int64_t mask_stride) {
  vectorized([=] {
    for (int64_t row = 0; row < rows; ++row) {
      float* x = s + row * keys;
      const int64_t n = visible.first + row * visible.growth;
      const float* m = mask + (mask ? row * mask_stride : 0);
      if (mask)
        for (int64_t j = 0; j < n; ++j) x[j] += m[j];
      float largest = x[0], sum = 0;
#pragma omp simd reduction(max : largest)
      for (int64_t j = 0; j < n; ++j) largest = x[j] > largest ? x[j] : largest;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < n; ++j) {
        x[j] = math::exp(x[j] - largest);
        sum += x[j];
      }
      const float inverse = 1.0f / sum;
      for (int64_t j = 0; j < n; ++j) x[j] *= inverse;
      for (int64_t j = n; j < keys; ++j) x[j] = 0;
    }
  });
}

// ds = p * (ds - sum(p * ds)) in each row.
void softmax_backward(const float* p, float* ds, int64_t rows, int64_t n) {
  vectorized([=] {
    for (int64_t row = 0; row < rows; ++row) {
      const float* weight = p + row * n;
      float *d = ds + row * n, sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < n; ++j) sum += weight[j] * d[j];
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) d[j] = weight[j] * (d[j] - sum);
    }
  });
}

// Rows of q, and of k and v, that belong together.
struct Sequence {
  int64_t example, first_query, queries, first_key, keys;
};

// The examples of a batch, or what the lengths say. Costs are relative.
class Sequences {
 public:
  Sequences(kernel::Prepare& p, const Sizes& s)
      : s_(s), where_(ir::describe(p.op())), causal_(p.attr<bool>("causal")) {
    if (p.has("q_lengths")) {
      count_ = p.in("q_lengths").shape[0];
      lengths_.emplace_back(p, "q_lengths", s.queries + 1, "rows of q, and one more");
      lengths_.emplace_back(p, "k_lengths", s.keys + 1, "rows of k, and one more");
    } else {
      count_ = s.batch;
    }
    list_.resize(static_cast<size_t>(count_));
    for (int64_t i = 0; i < count_; ++i)
      list_[static_cast<size_t>(i)] = {i, i * s.queries, s.queries, i * s.keys, s.keys};
  }

  bool packed() const { return !lengths_.empty(); }
  int64_t count() const { return count_; }
  const Sequence& operator[](int64_t i) const { return list_[static_cast<size_t>(i)]; }
  // Work per head.
  int64_t cost(int64_t i) const {
    return packed() ? (*this)[i].queries * ((*this)[i].keys + kCostOfRow) : 1;
  }
  // Rows of q and of k that belong to sequences.
  int64_t used_queries() const { return used_[0]; }
  int64_t used_keys() const { return used_[1]; }

  // Reads the lengths. Throws, so not to be called in a parallel region.
  void read(const kernel::Run& r) {
    if (!packed()) return;
    const Ids q = lengths_[0].checked(r), k = lengths_[1].checked(r);
    used_[0] = used_[1] = 0;
    for (int64_t i = 0; i < count_; ++i) {
      check_arg(q(i) == 0 || k(i) > 0, where_, "sequence ", i, " has ", q(i),
                " queries, but no keys");
      check_arg(!causal_ || k(i) >= q(i), where_, "sequence ", i, " has ", q(i), " queries and ",
                k(i), " keys; causal attention needs a key for every query");
      list_[static_cast<size_t>(i)] = {0, used_[0], q(i), used_[1], k(i)};
      used_[0] += q(i);
      used_[1] += k(i);
    }
    check_arg(used_[0] <= s_.queries && used_[1] <= s_.keys, where_, "the lengths add up to ",
              used_[0], " queries and ", used_[1], " keys; there are ", s_.queries, " and ",
              s_.keys, " rows");
  }

 private:
  static constexpr int64_t kCostOfRow = 32;  // of a query, in keys

  Sizes s_;
  std::string where_;
  bool causal_;
  int64_t count_ = 0, used_[2] = {};
  std::vector<IdInput> lengths_;  // of q, of k; or none
  std::vector<Sequence> list_;
};

// A few queries of one head of a sequence.
struct Block {
  const Sequence& of;
  int64_t head, first, rows;
};

class AttentionKernel : public kernel::Kernel {
 public:
  std::string_view implementation() const override {
    return Gemm{.rows = rows_of(s_.queries, s_.keys), .inner = s_.d, .columns = s_.keys}
        .implementation();
  }

 protected:
  // `buffers`: how many matrices of scores a block needs.
  AttentionKernel(kernel::Prepare& p, int buffers)
      : s_(sizes(p)),
        scale_(p.attr<float>("scale")),
        causal_(p.attr<bool>("causal")),
        sequences_(p, s_),
        parts_(parts_for(sequences_.count() * s_.heads, 1)),
        q_(p.input("q")),
        k_(p.input("k")),
        v_(p.input("v")),
        mask_(p),
        // Fewer keys make blocks of more queries.
        scores_(sequences_.packed() ? std::min(std::max(kScores, s_.keys), s_.queries * s_.keys)
                                    : rows_of(s_.queries, s_.keys) * s_.keys),
        buffers_(buffers),
        scratch_(p.scratch(static_cast<size_t>(parts_ * buffers * scores_) * sizeof(float))) {
    Gemm::prepare();
  }

  // body(block, scratch); the blocks of one head come in turn, in one thread. Which thread has
  // which heads follows from what they cost.
  template <class Body>
  void for_each_block(const kernel::Run& r, const Body& body) {
    sequences_.read(r);
    int64_t total = 0;
    for (int64_t i = 0; i < sequences_.count(); ++i) total += sequences_.cost(i) * s_.heads;
    parallel_parts(total, parts_, [&](int part, int64_t begin, int64_t end) {
      float* scratch = r.out<float>(scratch_) + part * buffers_ * scores_;
      int64_t at = 0;  // the cost of what comes before
      for (int64_t i = 0; i < sequences_.count() && at < end; ++i)
        for (int64_t head = 0; head < s_.heads; ++head, at += sequences_.cost(i))
          if (at >= begin && at < end) for_each_block_of(sequences_[i], head, scratch, body);
    });
  }
  template <class Body>
  static void for_each_block_of(const Sequence& of, int64_t head, float* scratch,
                                const Body& body) {
    const int64_t rows = rows_of(of.queries, of.keys);
    for (int64_t first = 0; first < of.queries; first += rows)
      body(Block{of, head, first, std::min(rows, of.queries - first)}, scratch);
  }

  int64_t q_offset(const Block& b) const {
    return (b.of.first_query + b.first) * s_.q_row() + b.head * s_.d;
  }
  int64_t k_offset(const Block& b) const { return b.of.first_key * s_.q_row() + b.head * s_.d; }
  int64_t v_offset(const Block& b) const { return b.of.first_key * s_.v_row() + b.head * s_.e; }
  int64_t out_offset(const Block& b) const {
    return (b.of.first_query + b.first) * s_.v_row() + b.head * s_.e;
  }

  void weights(const kernel::Run& r, const Block& b, float* out) const {
    const int64_t keys = b.of.keys;
    Gemm{.rows = b.rows,
         .inner = s_.d,
         .columns = keys,
         .transpose_b = true,
         .alpha = scale_,
         .stride_a = s_.q_row(),
         .stride_b = s_.q_row()}
        .run(r.in<float>(q_) + q_offset(b), r.in<float>(k_) + k_offset(b), out);
    const Visible visible =
        causal_ ? Visible{keys - b.of.queries + b.first + 1, 1} : Visible{keys, 0};
    masked_softmax(out, b.rows, keys, visible, mask_.row(r, b.of.example, b.head, b.first),
                   mask_.stride[2]);
  }

  // Rows of a result [.., width] that belong to no sequence.
  void zero_beyond(const kernel::Run& r, kernel::Slot slot, int64_t used, int64_t rows,
                   int64_t width) const {
    if (slot && sequences_.packed())
      zero_fill(r.out<float>(slot) + used * width,
                static_cast<size_t>((rows - used) * width) * sizeof(float));
  }

  Sizes s_;
  float scale_;
  bool causal_;
  Sequences sequences_;
  int parts_;
  kernel::Slot q_, k_, v_;
  Mask mask_;
  int64_t scores_;  // of a block, at most

 private:
  static constexpr int64_t kScores = 1 << 16;  // of a block

  // Queries of a block.
  static int64_t rows_of(int64_t queries, int64_t keys) {
    return std::clamp<int64_t>(kScores / std::max<int64_t>(keys, 1), 1,
                               std::max<int64_t>(queries, 1));
  }

  int64_t buffers_;
  kernel::Slot scratch_;
};

class Attention final : public AttentionKernel {
 public:
  explicit Attention(kernel::Prepare& p) : AttentionKernel(p, 1), out_(p.output("out")) {}

  void run(const kernel::Run& r) override {
    for_each_block(r, [&](const Block& b, float* p) {
      weights(r, b, p);
      Gemm{.rows = b.rows,
           .inner = b.of.keys,
           .columns = s_.e,
           .stride_b = s_.v_row(),
           .stride_c = s_.v_row()}
          .run(p, r.in<float>(v_) + v_offset(b), r.out<float>(out_) + out_offset(b));
    });
    zero_beyond(r, out_, sequences_.used_queries(), s_.queries, s_.v_row());
  }

 private:
  kernel::Slot out_;
};

void infer_grad(ir::Infer& c) {
  check(c);
  const ir::TensorType out{c.in("q").dtype,
                           {c.in("q").shape[0], c.in("q").shape[1], c.in("v").shape[2]}};
  c.check(c.in("dout") == out, c.show("dout"), "; expected ", out);
  for (const std::string slot : {"q", "k", "v"})
    if (c.out_count("d" + slot) > 0) c.out("d" + slot) = c.in(slot);
  if (c.out_count("dscores") > 0)
    c.out("dscores") = {c.has("mask") ? c.in("mask").dtype : f32, sizes(c).scores()};
}

ir::Cost cost_grad(const ir::Infer& c) { return {.flops = product_flops(c, 3, 2)}; }

class AttentionGrad final : public AttentionKernel {
 public:
  explicit AttentionGrad(kernel::Prepare& p)
      : AttentionKernel(p, 2),
        dout_(p.input("dout")),
        dq_(p.output("dq")),
        dk_(p.output("dk")),
        dv_(p.output("dv")),
        dscores_(p.output("dscores")) {}

  void run(const kernel::Run& r) override {
    for_each_block(r, [&](const Block& b, float* p) {
      const int64_t keys = b.of.keys;
      weights(r, b, p);
      if (dv_) value_gradient(r, b, p);
      if (!dq_ && !dk_ && !dscores_) return;
      float* ds = p + scores_;
      if (dscores_)
        ds = r.out<float>(dscores_) +
             ((b.of.example * s_.heads + b.head) * s_.queries + b.first) * keys;
      Gemm{.rows = b.rows,
           .inner = s_.e,
           .columns = keys,
           .transpose_b = true,
           .stride_a = s_.v_row(),
           .stride_b = s_.v_row()}
          .run(r.in<float>(dout_) + out_offset(b), r.in<float>(v_) + v_offset(b), ds);
      softmax_backward(p, ds, b.rows, keys);
      if (dq_) query_gradient(r, b, ds);
      if (dk_) key_gradient(r, b, ds);
    });
    zero_beyond(r, dq_, sequences_.used_queries(), s_.queries, s_.q_row());
    zero_beyond(r, dk_, sequences_.used_keys(), s_.keys, s_.q_row());
    zero_beyond(r, dv_, sequences_.used_keys(), s_.keys, s_.v_row());
    if (sequences_.packed()) zero_unseen(r);
  }

 private:
  // Keys that no query sees.
  void zero_unseen(const kernel::Run& r) const {
    for (int64_t i = 0; i < sequences_.count(); ++i) {
      const Sequence& of = sequences_[i];
      if (of.queries > 0) continue;
      zero_beyond(r, dk_, of.first_key, of.first_key + of.keys, s_.q_row());
      zero_beyond(r, dv_, of.first_key, of.first_key + of.keys, s_.v_row());
    }
  }

  void value_gradient(const kernel::Run& r, const Block& b, const float* p) const {
    Gemm{.rows = b.of.keys,
         .inner = b.rows,
         .columns = s_.e,
         .transpose_a = true,
         .accumulate = b.first > 0,
         .stride_b = s_.v_row(),
         .stride_c = s_.v_row()}
        .run(p, r.in<float>(dout_) + out_offset(b), r.out<float>(dv_) + v_offset(b));
  }
  void query_gradient(const kernel::Run& r, const Block& b, const float* ds) const {
    Gemm{.rows = b.rows,
         .inner = b.of.keys,
         .columns = s_.d,
         .alpha = scale_,
         .stride_b = s_.q_row(),
         .stride_c = s_.q_row()}
        .run(ds, r.in<float>(k_) + k_offset(b), r.out<float>(dq_) + q_offset(b));
  }
  void key_gradient(const kernel::Run& r, const Block& b, const float* ds) const {
    Gemm{.rows = b.of.keys,
         .inner = b.rows,
         .columns = s_.d,
         .transpose_a = true,
         .alpha = scale_,
         .accumulate = b.first > 0,
         .stride_b = s_.q_row(),
         .stride_c = s_.q_row()}
        .run(ds, r.in<float>(q_) + q_offset(b), r.out<float>(dk_) + k_offset(b));
  }

  kernel::Slot dout_, dq_, dk_, dv_, dscores_;
};

template <class K>
std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  static constexpr BySample kBySample{
      {"q", "k", "v", "mask", "out", "dout", "dq", "dk", "dv", "dscores"}};
  if (!has_half(p)) return make_new<K>(p);
  // A mask with fewer dimensions has no samples, whatever its first dimension is.
  const bool cut = !p.has("q_lengths") && (!p.has("mask") || p.in("mask").shape.rank() == 4);
  return make_in_f32(p, make_new<K>, cut ? kBySample : kAllAtOnce);
}

FLEETX_OP(attention)
    .input("q")
    .input("k")
    .input("v")
    .input("mask", ir::Arity::kOptional)
    .input("q_lengths", ir::Arity::kOptional)
    .input("k_lengths", ir::Arity::kOptional)
    .output("out")
    .attr("heads", 1)
    .attr("scale", 1.0)
    .attr("causal", false)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel(make<Attention>);

FLEETX_OP(attention_grad)
    .input("q")
    .input("k")
    .input("v")
    .input("mask", ir::Arity::kOptional)
    .input("q_lengths", ir::Arity::kOptional)
    .input("k_lengths", ir::Arity::kOptional)
    .input("dout")
    .output("dq", ir::Arity::kOptional)
    .output("dk", ir::Arity::kOptional)
    .output("dv", ir::Arity::kOptional)
    .output("dscores", ir::Arity::kOptional)
    .attr("heads", 1)
    .attr("scale", 1.0)
    .attr("causal", false)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel(make<AttentionGrad>);

}  // namespace
}  // namespace fleetx::ops
