// Everything an op file needs:
//
//   FLEETX_OP(scale).input("x").output("y").attr("scale", 1.0)
//       .infer(infer).grad(grad).kernel<ScaleKernel>().in_place("y", "x");
#pragma once

#include "fleetx/ir/grad.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/op_def.h"
#include "fleetx/kernel/kernel.h"

#define FLEETX_OP(name) \
  static const ::fleetx::ir::RegisterOp register_##name = ::fleetx::ir::OpRegistrar(#name)
