// JPEG by libjpeg-turbo. Thread-safe: every thread has its own codec.
#pragma once

#include <string>
#include <string_view>

#include "fleetx/data/image.h"

namespace fleetx::data {

struct JpegSize {
  int width = 0, height = 0;
};

// `source` names the picture in errors; what is damaged or not a JPEG is kCorrupt.
JpegSize jpeg_size(std::string_view bytes, std::string_view source);
// Decodes at 1/`reduce` of the size (1, 2, 4, 8; sides are rounded up). Grey and CMYK become RGB.
Image decode_jpeg(std::string_view bytes, std::string_view source, int reduce = 1);
std::string encode_jpeg(const Image& image, int quality = 90);

}  // namespace fleetx::data
