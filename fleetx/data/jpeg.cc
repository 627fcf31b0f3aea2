#include "fleetx/data/jpeg.h"

#include <turbojpeg.h>

#include <cstring>
#include <memory>

#include "fleetx/base/error.h"

namespace fleetx::data {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;

struct Destroy {
  void operator()(void* codec) const { tjDestroy(codec); }
};
using Codec = std::unique_ptr<void, Destroy>;

tjhandle decoder() {
  thread_local const Codec codec(tjInitDecompress());
  FLEETX_CHECK(codec != nullptr, "turbojpeg has no decoder");
  return codec.get();
}

tjhandle encoder() {
  thread_local const Codec codec(tjInitCompress());
  FLEETX_CHECK(codec != nullptr, "turbojpeg has no encoder");
  return codec.get();
}

struct Header {
  int width = 0, height = 0, colorspace = 0;
};

Header read_header(std::string_view bytes, std::string_view source) {
  Header h;
  int subsampling = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const int result = tjDecompressHeader3(decoder(), data, bytes.size(), &h.width, &h.height,
                                         &subsampling, &h.colorspace);
  check_file(result == 0 && h.width > 0 && h.height > 0, source,
             ": not a JPEG or damaged: ", tjGetErrorStr2(decoder()));
  check_file(int64_t{h.width} * h.height <= kMaxPixels, source, ": ", h.width, " x ", h.height,
             " pixels are more than the limit of ", kMaxPixels);
  return h;
}

// Ink amounts to light; libjpeg gives them as Adobe stores them, inverted (255: no ink).
void cmyk_to_rgb(const std::vector<uint8_t>& cmyk, Image& image) {
  for (size_t i = 0; i < cmyk.size() / 4; ++i) {
    const int black = cmyk[i * 4 + 3];
    for (size_t c = 0; c < 3; ++c)
      image.rgb[i * 3 + c] = static_cast<uint8_t>((cmyk[i * 4 + c] * black + 127) / 255);
  }
}

}  // namespace

JpegSize jpeg_size(std::string_view bytes, std::string_view source) {
  const Header h = read_header(bytes, source);
  return {h.width, h.height};
}

Image decode_jpeg(std::string_view bytes, std::string_view source, int reduce) {
  FLEETX_CHECK(reduce == 1 || reduce == 2 || reduce == 4 || reduce == 8, "reduce = ", reduce);
  const Header h = read_header(bytes, source);
  const tjscalingfactor factor{1, reduce};
  Image image(TJSCALED(h.width, factor), TJSCALED(h.height, factor));
  const bool cmyk = h.colorspace == TJCS_CMYK || h.colorspace == TJCS_YCCK;
  std::vector<uint8_t> inks(cmyk ? image.rgb.size() / 3 * 4 : 0);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const int result =
      tjDecompress2(decoder(), data, bytes.size(), cmyk ? inks.data() : image.rgb.data(),
                    image.width, 0, image.height, cmyk ? TJPF_CMYK : TJPF_RGB, 0);
  if (result != 0) {
    // Superfluous bytes between segments lose nothing (pictures in ImageNet have them); every other
    // complaint means that a part of the picture is missing or grey.
    const std::string_view reason = tjGetErrorStr2(decoder());
    const bool harmless = tjGetErrorCode(decoder()) == TJERR_WARNING &&
                          reason.find("extraneous bytes") != std::string_view::npos;
    check_file(harmless, source, ": damaged JPEG: ", reason);
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
  unsigned char* raw = nullptr;
  unsigned long bytes = 0;  // NOLINT: turbojpeg's own type
  const int result = tjCompress2(encoder(), image.rgb.data(), image.width, 0, image.height,
                                 TJPF_RGB, &raw, &bytes, TJSAMP_420, quality, 0);
  const std::unique_ptr<unsigned char, Free> owner(raw);
  check_arg(result == 0, "cannot encode a picture of ", image.width, " x ", image.height,
            " pixels: ", tjGetErrorStr2(encoder()));
  return {reinterpret_cast<const char*>(raw), bytes};
}

}  // namespace fleetx::data
