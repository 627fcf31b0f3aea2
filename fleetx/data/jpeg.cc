#include "fleetx/data/jpeg.h"

#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>

// After <cstdio>, which it needs and does not include.
#include <jerror.h>
#include <jpeglib.h>

#include "fleetx/base/error.h"

namespace fleetx::data {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;

// CMYK to RGB; libjpeg returns Adobe's inverted CMYK (255: no ink).
void cmyk_to_rgb(const std::vector<uint8_t>& cmyk, Image& image) {
  for (size_t i = 0; i < cmyk.size() / 4; ++i) {
    const int black = cmyk[i * 4 + 3];
    for (size_t c = 0; c < 3; ++c)
      image.rgb[i * 3 + c] = static_cast<uint8_t>((cmyk[i * 4 + c] * black + 127) / 255);
  }
}

// Pixels [first, last) along one axis.
struct Range {
  int first, last;
};

// The pixels that resample() reads, and two more: chroma is interpolated between neighbours.
Range touched(float start, float length, int limit) {
  return {std::clamp(static_cast<int>(std::floor(start - 0.5f)) - 2, 0, limit - 1),
          std::clamp(static_cast<int>(std::floor(start + length - 0.5f)) + 4, 1, limit)};
}

}  // namespace

// libjpeg reports errors by a callback that must not return; this one uses longjmp. The functions
// it jumps out of (start, open, rows) have no objects with destructors, so that is defined.
struct JpegReader::Codec {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = "";  // of the first error
  bool fresh = false;                  // the header has been read and nothing after it

  Codec() {
    info.err = jpeg_std_error(&errors);
    info.client_data = this;
    errors.error_exit = [](j_common_ptr c) {
      auto* self = static_cast<Codec*>(c->client_data);
      self->note(c);
      std::longjmp(self->escape, 1);
    };
    errors.emit_message = [](j_common_ptr c, int level) {
      // Superfluous bytes between segments lose nothing (pictures in ImageNet have them); every
      // other warning means that a part of the picture is missing or grey.
      if (level < 0 && c->err->msg_code != JWRN_EXTRANEOUS_DATA)
        static_cast<Codec*>(c->client_data)->note(c);
    };
  }
  ~Codec() { jpeg_destroy_decompress(&info); }

  void note(j_common_ptr c) {
    if (message[0] == '\0') c->err->format_message(c, message);
  }

  bool start(const char* data, size_t bytes) {
    if (setjmp(escape) != 0) return false;
    if (info.mem == nullptr) jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(data),
                 static_cast<unsigned long>(bytes));  // NOLINT: libjpeg's own type
    jpeg_read_header(&info, TRUE);
    fresh = true;
    return true;
  }

  bool cmyk() const {
    return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  }

  // Starts decoding; widens the columns to the block borders that libjpeg supports.
  bool open(int reduce, Range& columns) {
    if (setjmp(escape) != 0) return false;
    fresh = false;
    info.scale_num = 1;
    info.scale_denom = static_cast<unsigned>(reduce);
    info.out_color_space = cmyk() ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    JDIMENSION left = static_cast<JDIMENSION>(columns.first);
    JDIMENSION width = static_cast<JDIMENSION>(columns.last - columns.first);
    if (width < info.output_width) jpeg_crop_scanline(&info, &left, &width);
    columns = {static_cast<int>(left), static_cast<int>(left + width)};
    return true;
  }

  bool rows(Range range, uint8_t* out, size_t stride) {
    if (setjmp(escape) != 0) return false;
    if (range.first > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(range.first));
    while (static_cast<int>(info.output_scanline) < range.last && message[0] == '\0') {
      const auto done = static_cast<size_t>(static_cast<int>(info.output_scanline) - range.first);
      JSAMPROW line = out + done * stride;
      jpeg_read_scanlines(&info, &line, 1);
    }
    jpeg_abort_decompress(&info);
    return message[0] == '\0';
  }
};

JpegReader::JpegReader(std::string_view bytes, std::string source)
    : codec_(std::make_unique<Codec>()), bytes_(bytes), source_(std::move(source)) {
  const bool ok = codec_->start(bytes_.data(), bytes_.size());
  check_file(ok, source_, ": not a JPEG or damaged: ", codec_->message);
  check_file(width() > 0 && height() > 0, source_, ": a JPEG without a picture");
  check_file(int64_t{width()} * height() <= kMaxPixels, source_, ": ", width(), " x ", height(),
             " pixels are more than the limit of ", kMaxPixels);
}

JpegReader::~JpegReader() = default;

int JpegReader::width() const { return static_cast<int>(codec_->info.image_width); }
int JpegReader::height() const { return static_cast<int>(codec_->info.image_height); }

Image JpegReader::decode(int reduce) {
  Image image;
  decode_part({0, 0, static_cast<float>(width()), static_cast<float>(height())}, reduce, image);
  return image;
}

Crop JpegReader::decode_part(const Crop& crop, int reduce, Image& image) {
  FLEETX_CHECK(reduce == 1 || reduce == 2 || reduce == 4 || reduce == 8, "reduce = ", reduce);
  const int whole_width = (width() + reduce - 1) / reduce;
  const int whole_height = (height() + reduce - 1) / reduce;
  const float x = static_cast<float>(whole_width) / static_cast<float>(width());
  const float y = static_cast<float>(whole_height) / static_cast<float>(height());
  Range columns = touched(crop.left * x, crop.width * x, whole_width);
  const Range rows = touched(crop.top * y, crop.height * y, whole_height);
  // The header has been read; a second picture of the same bytes begins with it again.
  bool ok = (codec_->fresh || codec_->start(bytes_.data(), bytes_.size())) &&
            codec_->open(reduce, columns);
  if (ok) {
    image.width = columns.last - columns.first;
    image.height = rows.last - rows.first;
    const size_t pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
    image.rgb.resize(pixels * 3);
    const bool cmyk = codec_->cmyk();
    std::vector<uint8_t> inks(cmyk ? pixels * 4 : 0);
    ok = codec_->rows(rows, cmyk ? inks.data() : image.rgb.data(),
                      static_cast<size_t>(image.width) * (cmyk ? 4 : 3));
    if (ok && cmyk) cmyk_to_rgb(inks, image);
  }
  check_file(ok, source_, ": damaged JPEG: ", codec_->message);
  return {crop.left * x - static_cast<float>(columns.first),
          crop.top * y - static_cast<float>(rows.first), crop.width * x, crop.height * y,
          crop.mirror};
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
