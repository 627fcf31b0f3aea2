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

#include "fleetx/ops/lib/channels.h"
#include "fleetx/ops/lib/own_convolution.h"

namespace fleetx::ops {

class Winograd final : public OwnConvolution {
 public:
  static constexpr int64_t kBlock = 8;  // channels that stand together
  static bool wanted(ConvPass pass, const Convolution& c);

  Winograd(kernel::Prepare& p, ConvPass pass, const Convolution& c, const ConvOptions& options);
  void run(const kernel::Run& r) const override;

 private:
  struct Plane {
    int64_t blocks, height, width;  // of channels; places
  };
  struct Tile {
    int64_t image, row, column;
  };

  Tile tile(int64_t index) const;
  void make(const kernel::Run& r) const;
  void make_few(const kernel::Run& r) const;
  void make_weights(const kernel::Run& r) const;
  // Squares of one channel block, for `count` tiles from `first` on.
  template <class Line>
  void spread(const float* x, const Plane& plane, int64_t block, int64_t first, int64_t count,
              int64_t top, int64_t left, float* to, int64_t to_plane) const;
  const float* weights_of(const float* w, int64_t output, int64_t input) const;  // blocks
  template <class PointStep, class InputStep>
  void transform_weights(const float* w, int64_t pair, int64_t input, float* u,
                         PointStep point_step, InputStep input_step) const;
  void multiply_chunk(const float* v, const float* u, int64_t u_step, int64_t blocks, int64_t count,
                      bool add, float* m) const;
  void write(const float* m, int64_t o, int64_t first, int64_t count, const float* bias,
             float* out) const;
  void write_tile(const float* m, int64_t block, const Tile& at, const Vector8& shift,
                  float* out) const;

  ConvPass pass_;
  int threads_;
  bool relu_, few_ = false;
  Plane from_{}, to_{};  // where the 6x6 squares are, and the 4x4 ones
  int64_t pad_top_ = 0, pad_left_ = 0;
  int64_t outputs_ = 0;                         // channels of `to`, without padding
  int64_t rows_ = 0, columns_ = 0, tiles_ = 0;  // tiles of an image, and all
  int64_t chunk_ = 0;  // tiles that go through all stages together, while they are in cache
  // Squares are kept element by element: floats from one to the next, of the data, the products and
  // the weights.
  int64_t v_plane_ = 0, m_plane_ = 0, u_plane_ = 0;
  kernel::Slot transformed_weights_, squares_;
};

}  // namespace fleetx::ops
