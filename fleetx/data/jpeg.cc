#include "fleetx/data/jpeg.h"

#include <turbojpeg.h>

#include <cstring>
#include <memory>

#include "fleetx/base/error.h"

namespace fleetx::data {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;

// Ink amounts to light; libjpeg gives them as Adobe stores them, inverted (255: no ink).
void cmyk_to_rgb(const std::vector<uint8_t>& cmyk, Image& image) {
  for (size_t i = 0; i < cmyk.size() / 4; ++i) {
    const int black = cmyk[i * 4 + 3];
    for (size_t c = 0; c < 3; ++c)
      image.rgb[i * 3 + c] = static_cast<uint8_t>((cmyk[i * 4 + c] * black + 127) / 255);
  }
}

}  // namespace

void JpegReader::Close::operator()(void* codec) const { tjDestroy(codec); }

JpegReader::JpegReader(std::string_view bytes, std::string source)
    : codec_(tjInitDecompress()), bytes_(bytes), source_(std::move(source)) {
  FLEETX_CHECK(codec_ != nullptr, "turbojpeg has no decoder");
  int subsampling = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes_.data());
  const int result = tjDecompressHeader3(codec_.get(), data, bytes_.size(), &width_, &height_,
                                         &subsampling, &colorspace_);
  check_file(result == 0, source_, ": not a JPEG or damaged: ", tjGetErrorStr2(codec_.get()));
  check_file(width_ > 0 && height_ > 0, source_, ": a JPEG without a picture");
  check_file(int64_t{width_} * height_ <= kMaxPixels, source_, ": ", width_, " x ", height_,
             " pixels are more than the limit of ", kMaxPixels);
}

Image JpegReader::decode(int reduce) {
  FLEETX_CHECK(reduce == 1 || reduce == 2 || reduce == 4 || reduce == 8, "reduce = ", reduce);
  const tjscalingfactor factor{1, reduce};
  Image image(TJSCALED(width_, factor), TJSCALED(height_, factor));
  const bool cmyk = colorspace_ == TJCS_CMYK || colorspace_ == TJCS_YCCK;
  std::vector<uint8_t> inks(cmyk ? image.rgb.size() / 3 * 4 : 0);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes_.data());
  const int result =
      tjDecompress2(codec_.get(), data, bytes_.size(), cmyk ? inks.data() : image.rgb.data(),
                    image.width, 0, image.height, cmyk ? TJPF_CMYK : TJPF_RGB, 0);
  if (result != 0) {
    // Superfluous bytes between segments lose nothing (pictures in ImageNet have them); every other
    // complaint means that a part of the picture is missing or grey.
    const std::string_view reason = tjGetErrorStr2(codec_.get());
    const bool harmless = tjGetErrorCode(codec_.get()) == TJERR_WARNING &&
                          reason.find("extraneous bytes") != std::string_view::npos;
    check_file(harmless, source_, ": damaged JPEG: ", reason);
  }
  if (cmyk) cmyk_to_rgb(inks, image);
  return image;
}

std::string encode_jpeg(const Image& image, int quality) {
  check_arg(quality >= 1 && quality <= 100, "JPEG quality is ", quality,
            "; must be between 1 and 100");
  struct Free {
    void operator()(unsigned char* p) const { tjFree(p); }
  };
  struct Close {
    void operator()(void* codec) const { tjDestroy(codec); }
  };
  const std::unique_ptr<void, Close> codec(tjInitCompress());
  FLEETX_CHECK(codec != nullptr, "turbojpeg has no encoder");
  unsigned char* raw = nullptr;
  unsigned long bytes = 0;  // NOLINT: turbojpeg's own type
  const int result = tjCompress2(codec.get(), image.rgb.data(), image.width, 0, image.height,
                                 TJPF_RGB, &raw, &bytes, TJSAMP_420, quality, 0);
  const std::unique_ptr<unsigned char, Free> owner(raw);
  check_arg(result == 0, "cannot encode a picture of ", image.width, " x ", image.height,
            " pixels: ", tjGetErrorStr2(codec.get()));
  return {reinterpret_cast<const char*>(raw), bytes};
}

}  // namespace fleetx::data
