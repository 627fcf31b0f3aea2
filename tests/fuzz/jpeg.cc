// JPEG files: whole and in part, at every scale. Damage is an Error, never anything else.
#include "fleetx/data/jpeg.h"

#include "fleetx/base/error.h"

using namespace fleetx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    data::JpegReader jpeg(bytes, "fuzz");
    if (int64_t{jpeg.width()} * jpeg.height() > 1 << 16) return 0;
    const auto w = static_cast<float>(jpeg.width()), h = static_cast<float>(jpeg.height());
    const float share = static_cast<float>(size % 7 + 1) / 8;
    data::Image image;
    const data::Crop crop{w * (1 - share) * 0.4f, h * (1 - share) * 0.6f, w * share, h * share,
                          size % 2 == 0};
    const data::Crop part = jpeg.decode_part(crop, 1 << size % 4, image);
    float pixels[3 * 16 * 16];
    data::resample(image, part, 16, {}, pixels);
  } catch (const Error& e) {
    FLEETX_CHECK(e.kind() == Error::Kind::kCorrupt, e.what());
  }
  return 0;
}
