#include "fleetx/nn/window.h"

#include <algorithm>

namespace fleetx::nn {

ir::Ints Padding::resolve(const Var& image, Size2 kernel, Size2 stride, Size2 dilation,
                          const Where& where) const {
  const ir::Loc loc = user_line(image.builder(), where);
  check_arg(mode_.empty() || mode_ == "SAME" || mode_ == "VALID", loc, ": padding '", mode_,
            "' is not known; give numbers, \"SAME\" or \"VALID\"");
  if (!is_same()) return sizes_;
  const Shape& in = image.shape();
  check_arg(in.rank() == 4 && in[2] > 0 && in[3] > 0, loc,
            ": padding \"SAME\" needs an image [N,C,H,W] of known height and width, got '",
            image.name(), "' of ", image.type());
  check_arg(stride.height > 0 && stride.width > 0, loc, ": stride must be positive, got ",
            stride.height, " and ", stride.width);
  const auto total = [](int64_t size, int64_t k, int64_t step, int64_t gap) {
    const int64_t out = (size + step - 1) / step;
    return std::max<int64_t>((out - 1) * step + (k - 1) * gap + 1 - size, 0);
  };
  const int64_t h = total(in[2], kernel.height, stride.height, dilation.height);
  const int64_t w = total(in[3], kernel.width, stride.width, dilation.width);
  return {h / 2, h - h / 2, w / 2, w - w / 2};
}

}  // namespace fleetx::nn
