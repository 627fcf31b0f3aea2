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
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  int width() const;
  int height() const;
  // At 1/`reduce` of the size (1, 2, 4, 8; sides are rounded up). Grey and CMYK become RGB.
  Image decode(int reduce = 1);
  // Only what resample() needs of `crop`, which is given in pixels of the whole picture: the same
  // pixels as decode() has there, for a part of the work. Rows below the crop are not even looked
  // at, so damage there goes unnoticed. Replaces `image` (its memory is used again) and returns the
  // crop in pixels of it.
  Crop decode_part(const Crop& crop, int reduce, Image& image);

 private:
  struct Codec;
  std::unique_ptr<Codec> codec_;
  std::string_view bytes_;
  std::string source_;
};

std::string encode_jpeg(const Image& image, int quality = 90);

}  // namespace fleetx::data
