// Cases that cross_entropy and softmax_cross_entropy share.
#pragma once

#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {

// Element of a tensor seen as [outer, classes, inner].
struct ClassView {
  ClassView(const Shape& shape, int axis)
      : outer(shape.numel(0, axis)),
        classes(shape[axis]),
        inner(shape.numel(axis + 1, shape.rank())) {}
  size_t at(int64_t o, int64_t c, int64_t i) const {
    return static_cast<size_t>((o * classes + c) * inner + i);
  }
  int64_t outer, classes, inner;
};

inline Tensor softmax_of(const Tensor& x, int axis) {
  Tensor out(f32, x.shape());
  const ClassView v(x.shape(), axis);
  for (int64_t o = 0; o < v.outer; ++o) {
    for (int64_t i = 0; i < v.inner; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < v.classes; ++c)
        sum += std::exp(static_cast<double>(x.data<float>()[v.at(o, c, i)]));
      for (int64_t c = 0; c < v.classes; ++c)
        out.data<float>()[v.at(o, c, i)] =
            static_cast<float>(std::exp(static_cast<double>(x.data<float>()[v.at(o, c, i)])) / sum);
    }
  }
  return out;
}

// -sum(label * log p), or -log p[label] for integer labels.
inline Tensor entropy_of(const Tensor& p, const Tensor& label, int axis, int64_t ignored = -100) {
  const ClassView v(p.shape(), axis);
  Shape shape = p.shape();
  shape[axis] = 1;
  Tensor out(f32, shape);
  const auto log_p = [&](int64_t o, int64_t c, int64_t i) {
    return std::log(static_cast<double>(p.data<float>()[v.at(o, c, i)]));
  };
  for (int64_t o = 0; o < v.outer; ++o) {
    for (int64_t i = 0; i < v.inner; ++i) {
      const auto position = static_cast<size_t>(o * v.inner + i);
      double loss = 0;
      if (is_float(label.dtype())) {
        for (int64_t c = 0; c < v.classes; ++c)
          loss -= static_cast<double>(label.data<float>()[v.at(o, c, i)]) * log_p(o, c, i);
      } else {
        const int64_t l = label.dtype() == i64 ? label.data<int64_t>()[position]
                                               : label.data<int32_t>()[position];
        if (l != ignored) loss = -log_p(o, l, i);
      }
      out.data<float>()[position] = static_cast<float>(loss);
    }
  }
  return out;
}

inline Tensor to_i32(const Tensor& t) {
  Tensor out(i32, t.shape());
  for (size_t i = 0; i < out.data<int32_t>().size(); ++i)
    out.data<int32_t>()[i] = static_cast<int32_t>(t.data<int64_t>()[i]);
  return out;
}

// The cases of one op; `x` makes its input, `want` its outputs.
inline void add_class_loss_cases(
    Cases& cases, const std::function<Tensor(Shape)>& x,
    const std::function<Tensors(const Tensors&, int axis, int64_t ignored)>& want) {
  const auto add = [&](const std::string& label, const Shape& shape, const Tensor& labels, int axis,
                       ir::Attrs attrs = {}, int64_t ignored = -100) {
    cases.add({.label = label,
               .inputs = {OpInput("x", x(shape)), OpInput("label", labels).no_grad()},
               .attrs = std::move(attrs),
               .reference = [=](const Tensors& in) { return want(in, axis, ignored); },
               .epsilon = 2e-3});
  };
  add("hard", {5, 7}, random_ints({5, 1}, 0, 7), 1);
  add("no_class_axis", {5, 7}, random_ints({5}, 0, 7), 1);
  add("int32", {5, 7}, to_i32(random_ints({5, 1}, 0, 7)), 1);
  add("one_dimension", {9}, random_ints({1}, 0, 9), 0);
  add("three_dimensions", {2, 3, 70}, random_ints({2, 3, 1}, 0, 70), 2);
  add("ignore", {12, 3}, random_ints({12, 1}, 0, 3), 1, {{"ignore_index", 1}}, 1);
  add("axis", {2, 4, 3, 5}, random_ints({2, 3, 5}, 0, 4), 1, {{"axis", 1}});
  add("axis_kept", {3, 130}, random_ints({1, 130}, 0, 3), 0, {{"axis", -2}});
  add("axis_ignore", {3, 130}, random_ints({130}, 0, 3), 0, {{"axis", 0}, {"ignore_index", 2}}, 2);
  add("many_classes", {3, 2500}, random_ints({3, 1}, 0, 2500), 1);
  add("soft", {4, 6}, random({4, 6}, 3, 0.0f, 1.0f), 1, {{"soft_label", true}});
  add("soft_axis", {2, 3, 70}, random({2, 3, 70}, 4, 0.0f, 1.0f), 1,
      {{"soft_label", true}, {"axis", 1}});
}

}  // namespace fleetx::testing
