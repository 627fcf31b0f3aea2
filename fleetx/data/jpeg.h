// JPEG by libjpeg-turbo.
//
//   JpegReader jpeg(bytes, "photo.jpg");
//   Image half = jpeg.decode(2);
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fleetx/data/image.h"

namespace fleetx::data {

// `source` names the picture in errors; what is damaged or not a JPEG is kCorrupt. The bytes must
// outlive the reader. (A codec of its own for every picture: after an error libjpeg's is not to be
// trusted with the next one.)
class JpegReader {
 public:
  JpegReader(std::string_view bytes, std::string source);
  int width() const { return width_; }
  int height() const { return height_; }
  // At 1/`reduce` of the size (1, 2, 4, 8; sides are rounded up). Grey and CMYK become RGB.
  Image decode(int reduce = 1);

 private:
  struct Close {
    void operator()(void* codec) const;
  };
  std::unique_ptr<void, Close> codec_;
  std::string_view bytes_;
  std::string source_;
  int width_ = 0, height_ = 0, colorspace_ = 0;
};

std::string encode_jpeg(const Image& image, int quality = 90);

}  // namespace fleetx::data
