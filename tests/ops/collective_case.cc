#include "tests/ops/collective_case.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/autograd/backward.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

constexpr int64_t kRows = 2, kColumns = 3;  // rows for each rank

Shape shape_of(int ranks) { return {kRows * ranks, kColumns}; }

ir::Attrs attrs_of(const CollectiveCase& c, int ranks) {
  ir::Attrs attrs = c.attrs;
  attrs.emplace("group", "dp");
  if (c.gives_ranks) attrs.emplace("ranks", ranks);
  return attrs;
}

Values values_of_all(int ranks) {
  Values all;
  for (int r = 0; r < ranks; ++r) all.push_back(value_of(r, ranks));
  return all;
}

// Halves keep 8 or 11 bits.
double tolerance_of(DType dtype) {
  if (dtype == bf16) return 1e-2;
  return dtype == f16 ? 1e-3 : 1e-6;
}

void expect_values(const Tensor& got, const Value& want, const std::string& what) {
  const Value values = values_in(got);
  ASSERT_EQ(values.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(values[i], want[i], tolerance_of(got.dtype()) * (1 + std::abs(want[i])))
        << what << ", element " << i;
}

std::string label(const CollectiveCase& c, int ranks, DType dtype, int rank) {
  return str(c.op, " of ", name_of(dtype), " on rank ", rank, " of ", ranks);
}

}  // namespace

Value value_of(int rank, int ranks) {
  const Tensor ints = random_ints(shape_of(ranks), -4, 5, static_cast<uint64_t>(rank) + 1);
  return values_in(ints);
}

Tensor tensor_of(const Value& value, DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  for (size_t i = 0; i < value.size(); ++i) {
    switch (dtype) {
      case DType::kF32: t.data<float>()[i] = static_cast<float>(value[i]); break;
      case DType::kF64: t.data<double>()[i] = value[i]; break;
      case DType::kI32: t.data<int32_t>()[i] = static_cast<int32_t>(value[i]); break;
      case DType::kI64: t.data<int64_t>()[i] = static_cast<int64_t>(value[i]); break;
      case DType::kF16: t.data<Half>()[i] = static_cast<float>(value[i]); break;
      case DType::kBF16: t.data<BFloat16>()[i] = static_cast<float>(value[i]); break;
      case DType::kU8: t.data<uint8_t>()[i] = static_cast<uint8_t>(value[i]); break;
      case DType::kBool: ADD_FAILURE() << "bool"; break;
    }
  }
  return t;
}

Value values_in(const Tensor& t) {
  Value out;
  const auto take = [&]<class T>(std::span<T> data) {
    for (const T v : data) out.push_back(static_cast<double>(v));
  };
  switch (t.dtype()) {
    case DType::kF32: take(t.data<float>()); break;
    case DType::kF64: take(t.data<double>()); break;
    case DType::kI32: take(t.data<int32_t>()); break;
    case DType::kI64: take(t.data<int64_t>()); break;
    case DType::kF16:
      for (const Half v : t.data<Half>()) out.push_back(static_cast<float>(v));
      break;
    case DType::kBF16:
      for (const BFloat16 v : t.data<BFloat16>()) out.push_back(static_cast<float>(v));
      break;
    case DType::kU8: take(t.data<uint8_t>()); break;
    case DType::kBool: ADD_FAILURE() << "bool"; break;
  }
  return out;
}

Value combine(const Values& of, const std::function<double(double, double)>& fn) {
  Value out = of.front();
  for (size_t r = 1; r < of.size(); ++r)
    for (size_t i = 0; i < out.size(); ++i) out[i] = fn(out[i], of[r][i]);
  return out;
}

ir::Var start_and_wait(ir::Builder& b, const std::string& op, const ir::Var& x, const ir::Attrs& a,
                       const std::string& out, bool reads_late) {
  const ir::Results started =
      b.op(op + "_start", {{"xs", std::vector{x}}}, a, {{"out", ir::Names{out + "_pending"}}});
  std::vector<ir::Arg> args{{"xs", std::vector{b.var(out + "_pending")}},
                            {"ticket", started["ticket"]}};
  if (reads_late) args.emplace_back("held", std::vector{x});
  return b.op(op + "_wait", args, a, {{"out", ir::Names{out}}});
}

void check_forward(const CollectiveCase& c, int ranks, DType dtype) {
  run_workers(ranks, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Attrs attrs = attrs_of(c, ranks);
    const ir::Var x = b.data("x", dtype, {-1, kColumns});
    b.op(c.op, {{"xs", std::vector{x}}}, attrs, {{"out", ir::Names{"blocking"}}});
    start_and_wait(b, c.op, x, attrs, "overlapped", c.reads_late);
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    const Tensor own = tensor_of(value_of(rank, ranks), dtype, shape_of(ranks));
    const Value want = c.reference(values_of_all(ranks), rank);
    for (int step = 0; step < 2; ++step) {
      const auto out = exe.run(main, scope, {{"x", own}}, {"blocking", "overlapped"});
      expect_values(out[0], want, label(c, ranks, dtype, rank));
      expect_values(out[1], want, label(c, ranks, dtype, rank) + ", start and wait");
    }
    EXPECT_EQ(values_in(own), value_of(rank, ranks)) << "the input was changed";
  });
}

void check_in_place(const CollectiveCase& c, int ranks, DType dtype) {
  run_workers(ranks, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Attrs attrs = attrs_of(c, ranks);
    const ir::Var x = b.data("x", dtype, shape_of(ranks)), y = b.data("y", dtype, {5});
    const ir::Var one = b.op("assign", {{"x", x}}, {}, {{"out", "one"}});
    const ir::Var two = b.op("assign", {{"x", y}}, {}, {{"out", "two"}});
    const ir::Names names{"one", "two"};
    const auto started =
        b.op(c.op + "_start", {{"xs", std::vector{one, two}}}, attrs, {{"out", names}});
    b.op(c.op + "_wait", {{"xs", std::vector{one, two}}, {"ticket", started["ticket"]}}, attrs,
         {{"out", names}});
    Values first, second;
    for (int r = 0; r < ranks; ++r) {
      first.push_back(value_of(r, ranks));
      second.push_back(value_of(r + 7, ranks));
      second.back().resize(5);
    }
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    const auto at = static_cast<size_t>(rank);
    const runtime::Feeds feeds{{"x", tensor_of(first[at], dtype, shape_of(ranks))},
                               {"y", tensor_of(second[at], dtype, {5})}};
    for (int step = 0; step < 2; ++step) {
      const auto out = exe.run(main, scope, feeds, names);
      expect_values(out[0], c.reference(first, rank), label(c, ranks, dtype, rank) + ", in place");
      expect_values(out[1], c.reference(second, rank), label(c, ranks, dtype, rank) + ", second");
    }
    const bool reduces = c.attrs.contains("op");
    const bool fits = !reduces || ((dtype == f32 || dtype == bf16 || dtype == f16) &&
                                   c.attrs.at("op").as<std::string>() != "prod");
    EXPECT_EQ(exe.plan(main, scope, feeds, names).buckets().size(), fits ? 1u : 0u)
        << label(c, ranks, dtype, rank);
  });
}

void check_gradient(const CollectiveCase& c, int ranks) {
  run_workers(ranks, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, shape_of(ranks));
    const ir::Var y =
        b.op(c.op, {{"xs", std::vector{x}}}, attrs_of(c, ranks), {{"out", ir::Names{"y"}}});
    // Each rank weighs its results otherwise, and the loss is not linear.
    const ir::Var w = b.data("w", f32, y.shape());
    const ir::Var squares = b.op("elementwise_mul", {{"x", y}, {"y", y}});
    const ir::Var loss =
        b.op("reduce_sum",
             {{"x", static_cast<ir::Var>(b.op("elementwise_mul", {{"x", squares}, {"y", w}}))}});
    const ir::Var one = b.op("fill", {}, {{"shape", loss.shape()}, {"value", 1.0}});
    const ir::Var dx = autograd::gradients({loss}, {x}, {one}).front();
    ASSERT_TRUE(dx.defined());
    EXPECT_EQ(dx.shape(), x.shape());

    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    comm::Communicator& all = groups->at("dp");
    Tensor value = tensor_of(value_of(rank, ranks), f32, shape_of(ranks));
    const Tensor weights = random(y.shape(), static_cast<uint64_t>(rank), 0.5f, 1.5f);
    const auto run = [&] {
      const auto out =
          exe.run(main, scope, {{"x", value}, {"w", weights}}, {loss.name(), dx.name()});
      auto total = static_cast<double>(out[0].item<float>());
      all.all_reduce(&total, 1, f64);
      return std::pair(total, out[1].clone());
    };
    const Tensor got = run().second;
    constexpr float kStep = 0.25f;  // exact for a quadratic function
    for (int r = 0; r < ranks; ++r) {
      const auto end = static_cast<size_t>(value.numel());
      for (const size_t i : {size_t{0}, end / 2, end - 1}) {
        const auto moved = [&](float by) {
          if (r == rank) value.data<float>()[i] += by;
          const double total = run().first;
          if (r == rank) value.data<float>()[i] -= by;
          return total;
        };
        const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
        if (r == rank) {
          EXPECT_NEAR(got.data<float>()[i], slope, 2e-3 * (1 + std::abs(slope)))
              << "gradient of " << c.op << " on rank " << rank << " of " << ranks << ", element "
              << i;
        }
      }
    }
  });
}

void check_collective(const CollectiveCase& c) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const DType dtype : c.dtypes) {
      check_forward(c, ranks, dtype);
      if (c.in_place) check_in_place(c, ranks, dtype);
    }
    if (c.gradient) check_gradient(c, ranks);
  }
}

}  // namespace fleetx::testing
