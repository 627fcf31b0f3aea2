// Convolutions of unusual shapes: each computation gives what the definition gives, none is made by
// reference code, and none takes longer than five times a product of the same flops (or a copy of
// the same bytes, where that is what takes the time), all on one thread.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>

#include "fleetx/autograd/backward.h"
#include "fleetx/base/cpu.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/builder.h"
#include "fleetx/kernel/implementation.h"
#include "fleetx/ops/lib/gemm.h"
#include "fleetx/runtime/executor.h"
#include "tests/ops/convolve.h"
#include "tests/support/sanitized.h"

namespace fleetx::testing {
namespace {

using namespace ops;

// A convolution from src to dst; a transposed one goes from dst to src.
struct Grid {
  const char* label;
  Shape src, w;           // of one image; [O, C/groups, kh, kw]
  int64_t images, batch;  // for the results, for the rate
  ir::Ints stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
  bool transposed = false;
  double least = 0.2;  // of the rate of a product

  Shape src_of(int64_t n) const { return {n, src[0], src[1], src[2]}; }
  Shape dst_of(int64_t n) const { return {n, w[0], length(0), length(1)}; }
  int64_t length(int i) const {
    const auto d = static_cast<size_t>(i);
    return (src[1 + i] + 2 * padding[d] - dilation[d] * (w[2 + i] - 1) - 1) / stride[d] + 1;
  }
  Shape x(int64_t n) const { return transposed ? dst_of(n) : src_of(n); }
  Shape out(int64_t n) const { return transposed ? src_of(n) : dst_of(n); }
  double flops(int64_t n) const {
    return 2.0 * static_cast<double>(dst_of(n).numel()) * static_cast<double>(w.numel(1, 4));
  }
};

void PrintTo(const Grid& g, std::ostream* out) { *out << g.label; }

// With fewer than a dozen flops for each value that is moved, half of that rate is asked.
constexpr double kFewFlops = 0.1;
// Reference code is a hundred times slower: half of what is asked tells it apart on any machine.
constexpr double kOnABusyMachine = 0.5;

// clang-format off
const Grid kGrid[] = {
    // A kernel as wide as the picture: sentences, rows of words.
    {"text_3", {1, 100, 128}, {128, 1, 3, 128}, 2, 4},
    {"text_5_padded", {1, 50, 64}, {100, 1, 5, 64}, 2, 16, {1, 1}, {2, 0}},
    {"text_batch_1", {1, 100, 128}, {128, 1, 4, 128}, 1, 1},
    {"text_two_channels", {2, 60, 50}, {64, 2, 3, 50}, 2, 16},
    {"as_high_as_the_picture", {1, 64, 60}, {32, 1, 64, 3}, 1, 16},
    {"as_large_as_the_picture", {16, 14, 14}, {64, 16, 14, 14}, 3, 64},
    {"as_large_one_channel", {1, 28, 28}, {32, 1, 28, 28}, 3, 128},
    {"as_large_batch_1", {64, 7, 7}, {256, 64, 7, 7}, 1, 1},
    {"as_large_padded", {32, 5, 5}, {64, 32, 5, 5}, 2, 32, {1, 1}, {2, 2}},
    // One channel, or two.
    {"one_channel_3", {1, 64, 64}, {32, 1, 3, 3}, 1, 8, {1, 1}, {1, 1}},
    {"one_channel_5", {1, 28, 28}, {6, 1, 5, 5}, 2, 64},
    {"one_channel_stride", {1, 41, 40}, {16, 1, 5, 5}, 1, 32, {2, 2}, {2, 2}},
    {"one_channel_spectrogram", {1, 81, 50}, {32, 1, 21, 11}, 1, 4, {2, 2}, {10, 5}},
    {"two_channels", {2, 48, 48}, {32, 2, 3, 3}, 1, 8, {1, 1}, {1, 1}},
    {"one_to_one", {1, 64, 64}, {1, 1, 3, 3}, 2, 64, {1, 1}, {1, 1}},
    {"one_to_one_large", {1, 64, 64}, {1, 1, 11, 11}, 2, 16, {1, 1}, {5, 5}},
    {"to_one", {64, 28, 28}, {1, 64, 3, 3}, 2, 16, {1, 1}, {1, 1}},
    {"to_one_1x1", {64, 28, 28}, {1, 64, 1, 1}, 2, 8},
    {"to_three_9x9", {32, 24, 24}, {3, 32, 9, 9}, 1, 8, {1, 1}, {4, 4}},
    {"batch_1_colour", {3, 97, 113}, {32, 3, 7, 7}, 1, 1, {2, 2}, {3, 3}},
    {"odd_channels", {5, 28, 28}, {7, 5, 3, 3}, 2, 32, {1, 1}, {1, 1}},
    {"odd_channels_1x1", {17, 14, 14}, {33, 17, 1, 1}, 2, 64},
    // A stride larger than the kernel, patches.
    {"stride_beyond_kernel", {32, 33, 33}, {32, 32, 3, 3}, 1, 16, {4, 4}},
    {"stride_beyond_1x1", {32, 32, 32}, {64, 32, 1, 1}, 2, 64, {4, 4}},
    {"stride_beyond_one_channel", {1, 65, 65}, {16, 1, 3, 3}, 2, 32, {4, 5}},
    {"stride_uneven", {8, 30, 31}, {24, 8, 3, 3}, 2, 32, {1, 3}},
    {"patches_16", {3, 64, 64}, {96, 3, 16, 16}, 1, 8, {16, 16}},
    {"patches_4", {3, 64, 64}, {48, 3, 4, 4}, 1, 16, {4, 4}},
    {"stride_and_padding_1x1", {32, 16, 16}, {64, 32, 1, 1}, 2, 64, {2, 2}, {1, 1}},
    // Dilation.
    {"dilation_2", {32, 24, 24}, {32, 32, 3, 3}, 1, 4, {1, 1}, {2, 2}, {2, 2}},
    {"dilation_9", {32, 33, 33}, {48, 32, 3, 3}, 1, 2, {1, 1}, {9, 9}, {9, 9}},
    {"dilation_and_stride", {16, 33, 33}, {32, 16, 3, 3}, 1, 16, {2, 2}, {2, 2}, {2, 2}},
    {"dilation_beyond_stride", {4, 40, 40}, {12, 4, 3, 3}, 1, 16, {2, 3}, {2, 2}, {3, 2}},
    {"dilation_one_channel", {1, 60, 60}, {16, 1, 3, 3}, 1, 16, {1, 1}, {3, 3}, {3, 3}},
    // Groups.
    {"groups_of_4", {32, 28, 28}, {32, 4, 3, 3}, 1, 16, {1, 1}, {1, 1}, {1, 1}, 8},
    {"groups_of_3", {12, 28, 28}, {9, 4, 3, 3}, 2, 32, {1, 1}, {1, 1}, {1, 1}, 3},
    {"groups_of_12", {24, 20, 20}, {24, 12, 3, 3}, 2, 16, {1, 1}, {1, 1}, {1, 1}, 2},
    {"groups_1x1", {64, 14, 14}, {64, 4, 1, 1}, 2, 4, {1, 1}, {0, 0}, {1, 1}, 16, false, kFewFlops},
    {"groups_dilated_stride", {16, 30, 30}, {16, 2, 3, 3}, 2, 8, {2, 2}, {2, 2}, {2, 2}, 8},
    {"depthwise_3", {48, 28, 28}, {48, 1, 3, 3}, 1, 16, {1, 1}, {1, 1}, {1, 1}, 48},
    {"depthwise_7", {32, 28, 28}, {32, 1, 7, 7}, 1, 8, {1, 1}, {3, 3}, {1, 1}, 32},
    {"depthwise_5_stride", {32, 28, 28}, {32, 1, 5, 5}, 1, 4, {2, 2}, {2, 2}, {1, 1}, 32, false, kFewFlops},
    {"depthwise_dilated", {32, 28, 28}, {32, 1, 3, 3}, 1, 4, {1, 1}, {2, 2}, {2, 2}, 32},
    {"depthwise_two_each", {16, 28, 28}, {32, 1, 3, 3}, 2, 8, {1, 1}, {1, 1}, {1, 1}, 16},
    {"depthwise_large", {16, 32, 32}, {16, 1, 17, 17}, 1, 4, {1, 1}, {8, 8}, {1, 1}, 16},
    {"depthwise_colour", {3, 64, 64}, {3, 1, 11, 11}, 1, 8, {1, 1}, {5, 5}, {1, 1}, 3},
    {"depthwise_batch_1", {64, 14, 14}, {64, 1, 5, 5}, 1, 1, {1, 1}, {2, 2}, {1, 1}, 64},
    // One dimension.
    {"row", {32, 1, 200}, {48, 32, 1, 3}, 2, 16, {1, 1}, {0, 1}},
    {"column", {32, 200, 1}, {48, 32, 3, 1}, 2, 16, {1, 1}, {1, 0}},
    {"row_dilated", {32, 1, 500}, {32, 32, 1, 2}, 1, 16, {1, 1}, {0, 0}, {1, 128}},
    {"row_of_samples", {1, 1, 4000}, {64, 1, 1, 80}, 1, 4, {1, 4}},
    {"row_of_samples_wide", {1, 1, 8000}, {64, 1, 1, 400}, 1, 8, {1, 160}},
    {"row_depthwise", {64, 1, 200}, {64, 1, 1, 9}, 2, 4, {1, 1}, {0, 4}, {1, 1}, 64},
    {"column_depthwise", {64, 200, 1}, {64, 1, 9, 1}, 2, 4, {1, 1}, {4, 0}, {1, 1}, 64},
    {"flat_7", {32, 17, 17}, {48, 32, 1, 7}, 1, 8, {1, 1}, {0, 3}},
    // Much padding.
    {"padding_beyond_kernel", {16, 8, 8}, {16, 16, 3, 3}, 2, 32, {1, 1}, {5, 5}},
    // The other way.
    {"up_2", {16, 28, 28}, {32, 16, 4, 4}, 1, 4, {2, 2}, {1, 1}, {1, 1}, 1, true},
    {"up_to_one", {1, 56, 56}, {32, 1, 4, 4}, 1, 16, {2, 2}, {1, 1}, {1, 1}, 1, true},
    {"up_to_colour", {3, 40, 40}, {24, 3, 5, 5}, 1, 8, {2, 2}, {2, 2}, {1, 1}, 1, true},
    {"up_depthwise", {24, 28, 28}, {24, 1, 4, 4}, 1, 4, {2, 2}, {1, 1}, {1, 1}, 24, true, kFewFlops},
    {"up_text", {1, 50, 64}, {64, 1, 3, 64}, 1, 8, {1, 1}, {0, 0}, {1, 1}, 1, true},
};
// clang-format on

enum class Ask { kAll, kBoth, kWeights };  // gradients: with dbias, dx and dw, dw

// One convolution with its gradients, planned.
struct Planned {
  Planned(const Grid& g, int64_t n, Ask ask) {
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, g.x(n)), w = b.parameter({.name = "w", .shape = g.w});
    const ir::Var bias = b.parameter({.name = "bias", .shape = {g.out(n)[1]}});
    scope.set("w", random(g.w, 2));
    scope.set("bias", random({g.out(n)[1]}, 3));
    ir::Attrs attrs{{"stride", g.stride},
                    {"padding", g.padding},
                    {"dilation", g.dilation},
                    {"groups", g.groups}};
    if (g.transposed) {
      ir::Ints rest;
      for (int i = 0; i < 2; ++i) {
        const auto d = static_cast<size_t>(i);
        rest.push_back((g.src[1 + i] + 2 * g.padding[d] - g.dilation[d] * (g.w[2 + i] - 1) - 1) %
                       g.stride[d]);
      }
      attrs.emplace("output_padding", rest);
    }
    const ir::Var out = b.op(g.transposed ? "conv2d_transpose" : "conv2d",
                             {{"x", x}, {"w", w}, {"bias", bias}}, attrs);
    EXPECT_EQ(out.shape(), g.out(n));
    const ir::Var seed = b.data("seed", f32, out.shape());
    fetch.push_back(out.name());
    std::vector<ir::Var> of{w};
    if (ask != Ask::kWeights) of.insert(of.begin(), x);
    if (ask == Ask::kAll) of.push_back(bias);
    for (const ir::Var& grad : autograd::gradients({out}, of, {seed})) fetch.push_back(grad.name());
    feeds = {{"x", random(g.x(n), 1)}, {"seed", random(out.shape(), 4)}};
  }
  runtime::Plan& plan() { return exe.plan(main, scope, feeds, fetch); }

  ir::Program main, startup;
  runtime::Scope scope;
  runtime::Feeds feeds;
  ir::Names fetch;
  runtime::Executor exe;
};

// fn(place in src, in w, in dst) for every multiplication.
template <class Fn>
void for_each_term(const Grid& g, int64_t images, const Fn& fn) {
  const Shape src = g.src_of(images), dst = g.dst_of(images);
  size_t d = 0;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t o = 0; o < dst[1]; ++o)
      for (int64_t i = 0; i < dst[2]; ++i)
        for (int64_t j = 0; j < dst[3]; ++j, ++d)
          for (int64_t c = 0; c < g.w[1]; ++c) {
            const int64_t channel = o / (g.w[0] / g.groups) * g.w[1] + c;
            for (int64_t a = 0; a < g.w[2]; ++a) {
              const int64_t h = i * g.stride[0] + a * g.dilation[0] - g.padding[0];
              if (h < 0 || h >= src[2]) continue;
              const int64_t row = ((n * src[1] + channel) * src[2] + h) * src[3];
              const int64_t weight = ((o * g.w[1] + c) * g.w[2] + a) * g.w[3];
              for (int64_t b = 0; b < g.w[3]; ++b) {
                const int64_t v = j * g.stride[1] + b * g.dilation[1] - g.padding[1];
                if (v >= 0 && v < src[3])
                  fn(static_cast<size_t>(row + v), static_cast<size_t>(weight + b), d);
              }
            }
          }
}

// out, dx, dw, dbias by the definition, in f64.
Tensors definition(const Grid& g, const Planned& p) {
  const Tensor &x = p.feeds[0].second, &dout = p.feeds[1].second;
  const Tensor w = random(g.w, 2), bias = random({dout.shape()[1]}, 3);
  const auto xs = x.data<float>(), ws = w.data<float>(), ds = dout.data<float>();
  std::vector<double> out(ds.size()), dx(xs.size()), dw(ws.size()),
      dbias(bias.data<float>().size());
  const auto channels = static_cast<size_t>(dout.shape()[1]),
             places = static_cast<size_t>(dout.shape().numel(2, 4));
  for (size_t i = 0; i < ds.size(); ++i) {
    out[i] = bias.data<float>()[i / places % channels];
    dbias[i / places % channels] += ds[i];
  }
  for_each_term(g, x.shape()[0], [&](size_t src, size_t weight, size_t dst) {
    const size_t from = g.transposed ? dst : src, to = g.transposed ? src : dst;
    out[to] += static_cast<double>(xs[from]) * static_cast<double>(ws[weight]);
    dx[from] += static_cast<double>(ds[to]) * static_cast<double>(ws[weight]);
    dw[weight] += static_cast<double>(ds[to]) * static_cast<double>(xs[from]);
  });
  const auto rounded = [](const Shape& shape, const std::vector<double>& values) {
    Tensor t(f32, shape);
    std::copy(values.begin(), values.end(), t.data<float>().begin());
    return t;
  };
  return {rounded(dout.shape(), out), rounded(x.shape(), dx), rounded(g.w, dw),
          rounded(bias.shape(), dbias)};
}

class ConvShapes : public ::testing::TestWithParam<Grid> {};

TEST_P(ConvShapes, EqualTheDefinition) {
  const Grid& g = GetParam();
  Planned both(g, g.images, Ask::kAll), weights(g, g.images, Ask::kWeights);
  const Tensors want = definition(g, both);
  const Tensors got = both.exe.run(both.main, both.scope, both.feeds, both.fetch);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LT(distance(got[i], want[i]), 1e-5) << "out, dx, dw, dbias: " << i;
  const Tensors alone = weights.exe.run(weights.main, weights.scope, weights.feeds, weights.fetch);
  EXPECT_LT(distance(alone[1], want[2]), 1e-5) << "dw alone";
}

TEST_P(ConvShapes, NeedNoReferenceCode) {
  const Grid& g = GetParam();
  for (const Ask ask : {Ask::kAll, Ask::kBoth, Ask::kWeights})
    for (const int64_t n : {g.images, g.batch}) {
      Planned p(g, n, ask);
      for (const runtime::Step& step : p.plan().steps())
        EXPECT_FALSE(kernel::is_reference(step.kernel->implementation()))
            << step.label << " by " << step.kernel->implementation();
      EXPECT_EQ(p.plan().table().find("<- slow"), std::string::npos);
    }
}

TEST_P(ConvShapes, GiveTheSameBitsOnEveryNumberOfThreads) {
  const Grid& g = GetParam();
  const auto results = [&](int threads, bool* own) {
    set_num_threads(threads);
    Planned p(g, g.images, Ask::kAll);
    for (const runtime::Step& step : p.plan().steps())
      if (step.label.starts_with("conv2d") && step.kernel->implementation() != "own:planes")
        *own = false;
    return p.exe.run(p.main, p.scope, p.feeds, p.fetch);
  };
  const int before = num_threads();
  bool own = true;
  const Tensors one = results(1, &own), three = results(3, &own);
  set_num_threads(before);
  if (!own) GTEST_SKIP() << "oneDNN promises no such thing";
  for (size_t i = 0; i < 3; ++i)  // the sum of dbias is cut by threads
    EXPECT_EQ(std::memcmp(one[i].raw(), three[i].raw(), one[i].bytes()), 0) << "fetch " << i;
}

// ---- rates ----

// Of this thread: what others do on the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Seconds of the fastest run of each kind of step.
struct Fastest : runtime::Plan::Observer {
  void after(const runtime::Plan&, const runtime::Step& step, size_t, uint64_t, uint64_t) override {
    const double now = cpu_seconds(), seconds = now - before;
    before = now;
    const auto [at, is_new] = times.emplace(step.label, seconds);
    if (!is_new) at->second = std::min(at->second, seconds);
    names[step.label] = step.kernel->implementation();
  }
  double before = 0;
  std::map<std::string, double> times;
  std::map<std::string, std::string> names;
};

template <class Fn>
double fastest(int runs, const Fn& fn) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const double start = cpu_seconds();
    fn();
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

// A square product of these flops.
double product_time(double flops) {
  const auto n = static_cast<int64_t>(std::cbrt(flops / 2));
  const Gemm g{.rows = n, .inner = n, .columns = n, .definition = true};
  const Tensor a = random({n, n}, 1), b = random({n, n}, 2);
  Tensor c(f32, {n, n});
  Gemm::prepare();
  return fastest(
      5, [&] { g.run(a.data<float>().data(), b.data<float>().data(), c.data<float>().data()); });
}

double copy_time(size_t bytes) {
  std::vector<char> from(bytes / 2, 1), to(bytes / 2);
  return fastest(8, [&] { std::memcpy(to.data(), from.data(), from.size()); });
}

struct Rate {
  std::string what;
  double computations, seconds;
};

// Of forward, of the gradient of the weights, and of both gradients together.
std::vector<Rate> measure(const Grid& g) {
  std::vector<Rate> rates;
  for (const Ask ask : {Ask::kBoth, Ask::kWeights}) {
    Planned p(g, g.batch, ask);
    p.exe.run(p.main, p.scope, p.feeds, p.fetch);  // sets the feeds
    Fastest fast;
    runtime::Plan& plan = p.plan();
    for (int i = 0; i < 8; ++i) {
      fast.before = cpu_seconds();
      plan.run(fast);
    }
    const std::string op = g.transposed ? "conv2d_transpose" : "conv2d";
    const auto add = [&](const std::string& what, const std::string& label, double computations) {
      rates.push_back(
          {str(what, " by ", fast.names.at(label)), computations, fast.times.at(label)});
    };
    if (ask == Ask::kBoth) add("forward", op, 1);
    ask == Ask::kBoth ? add("dx and dw", op + "_grad", 2) : add("dw", op + "_grad", 1);
  }
  return rates;
}

TEST_P(ConvShapes, KeepUpWithAProduct) {
  if (kSanitized || cpu::best_isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "rates mean nothing here";
  const Grid& g = GetParam();
  const double flops = g.flops(g.batch);
  const auto bytes =
      static_cast<size_t>(g.src_of(g.batch).numel() + g.w.numel() + g.dst_of(g.batch).numel()) *
      sizeof(float);
  const int threads = num_threads();
  set_num_threads(1);
  std::map<std::string, double> best;  // share of each computation
  const auto slow = [&] {
    std::string lines;
    for (const auto& [what, share] : best)
      if (share < kOnABusyMachine * g.least)
        lines += str(what, ": ", share, " of the rate of a product, asked: ", g.least, "\n");
    return lines;
  };
  // Neighbours on the machine share its caches and its frequency.
  for (int attempt = 0; attempt < 6 && (attempt == 0 || !slow().empty()); ++attempt) {
    const double least = std::max(product_time(flops), copy_time(bytes));
    for (const Rate& rate : measure(g)) {
      double& share = best[rate.what];
      share = std::max(share, least * rate.computations / rate.seconds);
    }
  }
  for (const auto& [what, share] : best)
    RecordProperty(what.substr(0, what.find(" by")), str(share));
  set_num_threads(threads);
  EXPECT_EQ(slow(), "");
}

INSTANTIATE_TEST_SUITE_P(Grid, ConvShapes, ::testing::ValuesIn(kGrid),
                         [](const auto& info) { return std::string(info.param.label); });

}  // namespace
}  // namespace fleetx::testing
