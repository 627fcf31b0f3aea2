// All functions that emit ops and own no parameters.
#pragma once

#include "fleetx/nn/activation.h"
#include "fleetx/nn/logic.h"
#include "fleetx/nn/loss.h"
#include "fleetx/nn/manipulation.h"
#include "fleetx/nn/math.h"
#include "fleetx/nn/metric.h"
#include "fleetx/nn/operators.h"
#include "fleetx/nn/pool.h"
#include "fleetx/nn/source.h"
