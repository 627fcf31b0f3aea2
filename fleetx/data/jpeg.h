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
// outlive the reader. (One codec per picture: after an error a codec of libjpeg cannot be
// reused safely.)
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
  // Decodes only what resample() needs of `crop`, given in pixels of the whole picture; these
  // pixels equal those of decode(). Rows below the crop are not read, so damage there is not
  // detected. Replaces `image`, reuses its memory, and returns the crop in pixels of `image`.
  Crop decode_part(const Crop& crop, int reduce, Image& image);

 private:
  struct Codec;
  std::unique_ptr<Codec> codec_;
  std::string_view bytes_;
  std::string source_;
};

std::string encode_jpeg(const Image& image, int quality = 90);

}  // namespace fleetx::data
