// Convolutions with few channels in a group, where vectors of channels, which oneDNN uses, would be
// mostly empty: depthwise ones that it has no code for, small groups, one channel in or out.
//
// Vectors go along the image instead. A band of rows is copied with its padding, each phase of the
// stride to a plane of its own, so that the value for a tap of the kernel stands at a fixed
// distance from the place of the result, for all places of a row and for all rows:
//
//   forward  out[o][p]     = sum over c, taps   w[o][c][tap] * x[c][p + offset(tap)]
//   data     dx[c][p]      = sum over o, taps   w[o][c][tap] * dout[o][p + offset(tap)]
//   weights  dw[o][c][tap] = sum over places p  dout[o][p] * x[c][p + offset(tap)]
//
// p counts the places of a band, with those at the end of each row that only the padding reaches;
// what is computed there is thrown away. All tensors are row-major. The result does not depend on
// the number of threads.
#pragma once

#include "fleetx/ops/lib/own_convolution.h"

namespace fleetx::ops {

class PlaneConvolution final : public OwnConvolution {
 public:
  // What is computed for each result that is kept.
  static double waste(ConvPass pass, const Convolution& c);
  // Values of src and dst that are copied; a stride may leave some out.
  static double copied(const Convolution& c);

  PlaneConvolution(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                   const ConvOptions& options);
  void run(const kernel::Run& r) const override;

 private:
  // Along height or width.
  struct Axis {
    int64_t src, dst, kernel, stride, dilation, pad;
    int64_t reach;  // of the kernel beyond its first place, in places of the result
    std::vector<int64_t> phases;

    int64_t phase_of(int64_t tap) const { return tap * dilation % stride; }
    int64_t step_of(int64_t tap) const { return tap * dilation / stride; }
  };
  struct Tap {
    int64_t offset, weight;
  };
  // One image, group and band.
  struct Part {
    int64_t image, group, first, rows;
  };

  static Axis axis(const Convolution& c, int i);
  Part part(int64_t index) const;
  void make_taps();
  int parts_of(int64_t count) const;
  void run_forward(const kernel::Run& r) const;
  void run_data(const kernel::Run& r) const;
  void run_weights(const kernel::Run& r) const;
  // Copies of a band: of x by phases, of dout with zeros before each row or behind it.
  void copy_src(const float* x, const Part& at, float* to) const;
  enum class Zeros { kBefore, kBehind };
  void copy_dst(const float* dout, const Part& at, Zeros zeros, float* to) const;
  void write_dst(const float* sums, const Part& at, int64_t channel, const float* bias,
                 float* out) const;
  void clear_src(const Part& at, float* dx) const;
  void write_src(const float* sums, const Part& at, int64_t channel, size_t phase, float* dx) const;

  ConvPass pass_;
  bool relu_;
  Axis rows_, columns_;
  int64_t batch_, groups_, inputs_, outputs_;  // channels of a group
  int64_t row_;                                // floats of a row in a copy
  int64_t band_ = 0, bands_ = 0;               // rows of a band; bands of an image
  int64_t plane_ = 0;                          // floats of one channel and phase in a copy
  int64_t sums_ = 0;                           // floats of a channel of results
  std::vector<std::vector<Tap>> taps_;         // kData: of each phase; else one list
  int threads_;
  int64_t pieces_ = 1;  // kWeights: sums that are kept apart
  int64_t room_ = 0;    // floats of a thread
  kernel::Slot memory_, partial_;
};

}  // namespace fleetx::ops
