// Everything for writing networks:
//
//   ir::Program main, startup;
//   ir::Builder b(main, startup);
//   Var image = b.data("image", f32, {-1, 1, 28, 28});
//   Var label = b.data("label", i64, {-1, 1});
//   Var x = nn::conv2d(image, {.filters = 20, .kernel = 5, .act = "relu"});
//   x = nn::pool2d(x, {.kernel = 2, .stride = 2});
//   Var logits = nn::fc(x, {.size = 10});
//   Var loss = nn::mean(nn::softmax_cross_entropy(logits, label));
#pragma once

#include "fleetx/nn/conv.h"
#include "fleetx/nn/embedding.h"
#include "fleetx/nn/fc.h"
#include "fleetx/nn/functional.h"
#include "fleetx/nn/norm.h"
#include "fleetx/nn/transformer.h"
