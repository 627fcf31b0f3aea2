// Winograd's F(4x4, 3x3) for CPUs for which oneDNN has none (AVX2). A 4x4 square of places is made
// from a 6x6 square with 36 multiplications per pair of channels instead of 144:
//
//   forward, data:  out = A^T [ sum over channels (G w G^T) * (B^T x B) ] A
//   weights:        dw  = G^T [ sum over squares  (B^T x B) * (A dout A^T) ] G
//
// with * element by element, so the sums are 36 products of matrices. B, G and A belong to the
// points 0, 1, -1, 2, -2 and infinity. The gradient of the data is the convolution of dout with the
// weights turned by 180 degrees and their channels exchanged.
#pragma once

#include "fleetx/ops/channels.h"
#include "fleetx/ops/convolution.h"

namespace fleetx {

class Winograd {
 public:
  // Activations are nChw8c, weights OIhw8i8o.
  static Layout activations() { return {{0, 1, 2, 3}, {{1, 8}}}; }
  static Layout weights() { return {{0, 1, 2, 3}, {{1, 8}, {0, 8}}}; }
  static constexpr std::string_view kName = "own:wino_4x3";
  // Where it is the fastest way.
  static bool wanted(const kernel::Prepare& p, const Convolution& c);

  Winograd() = default;
  Winograd(kernel::Prepare& p, ConvPass pass, const Convolution& c,
           const ConvOptions& options = {});
  // src, weights and dst of the convolution, whichever of them is the result.
  void bind(kernel::Slot src, kernel::Slot weights, kernel::Slot dst, kernel::Slot bias = {});
  void run(const kernel::Run& r) const;
  explicit operator bool() const { return threads_ > 0; }

 private:
  struct Plane {
    int64_t blocks, height, width;  // of channels; places
  };
  struct Tile {
    int64_t image, row, column;
  };

  Tile tile(int64_t index) const;
  void transform_weights(const kernel::Run& r) const;
  void make(const kernel::Run& r) const;
  void make_weights(const kernel::Run& r) const;
  // Squares of one channel block, for `count` tiles from `first` on.
  template <class Line>
  void spread(const float* x, const Plane& plane, int64_t block, int64_t first, int64_t count,
              int64_t top, int64_t left, float* to, int64_t to_plane) const;
  void write_tile(const float* m, int64_t block, const Tile& at, const Vector8& shift,
                  float* out) const;

  ConvPass pass_ = ConvPass::kForward;
  int threads_ = 0;
  bool relu_ = false;
  Plane from_{}, to_{};  // where the 6x6 squares are, and the 4x4 ones
  int64_t pad_top_ = 0, pad_left_ = 0;
  int64_t outputs_ = 0;                         // channels of `to`, without padding
  int64_t rows_ = 0, columns_ = 0, tiles_ = 0;  // tiles of an image, and all
  int64_t chunk_ = 0;  // tiles that go through all stages together, while they are in cache
  // Squares are kept element by element: floats from one to the next, of the data, the products and
  // the weights.
  int64_t v_plane_ = 0, m_plane_ = 0, u_plane_ = 0;
  kernel::Slot src_, weights_, dst_, bias_, transformed_weights_, squares_;
};

}  // namespace fleetx
