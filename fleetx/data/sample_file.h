// The samples of one file, text or binary, one after the other.
//
//   SampleFile file("part-0.gz", {.format = format});
//   while (file.read(512, samples) > 0) ...
//
// Binary files are known by their first bytes, whatever their names. Used by one thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "fleetx/data/binary_samples.h"
#include "fleetx/data/line_format.h"

namespace fleetx::data {

enum class BadLines {
  kFail,  // kCorrupt, with file, line, slot, why
  kSkip,  // left out and counted
};

// Of `count` readers of the same file, number `index` takes its first line or sample, and every
// count-th from there on. Other lines are not looked at, so a damaged one is one reader's.
struct Share {
  int64_t index = 0, count = 1;
};

struct SampleFileOptions {
  std::shared_ptr<const LineFormat> format{};  // shared by all files and threads of a reader
  std::string command{};                       // the file goes through it; see byte_source.h
  BadLines bad_lines = BadLines::kFail;        // damage of a binary file is always an error
  Share share{};
  const std::atomic<bool>* stop = nullptr;  // set by another thread: read() comes to an end
};

class SampleFile {
 public:
  SampleFile(const std::string& path, const SampleFileOptions& options);
  // The same for bytes that come from elsewhere; `name` is for messages.
  SampleFile(std::unique_ptr<ByteSource> source, std::string name, SampleFileOptions options);
  SampleFile(const SampleFile&) = delete;
  SampleFile& operator=(const SampleFile&) = delete;

  // Adds at most n samples and says how many; 0: the end, or stopped.
  int64_t read(int64_t n, Samples& to);
  int64_t skipped() const { return skipped_; }
  const std::string& first_skipped() const { return first_skipped_; }  // what is wrong with it

 private:
  bool stopped() const { return options_.stop != nullptr && *options_.stop; }
  bool fill();
  void read_more();
  int64_t read_text(int64_t n, Samples& to);
  int64_t read_binary(int64_t n, Samples& to);
  // Of the line or sample `number_`.
  bool is_mine() const {
    const auto [index, count] = options_.share;
    return count == 1 || (number_ - 1) % count == index;
  }
  void skip_or_fail(const BadLine& why, Samples& to);

  SampleFileOptions options_;
  std::string name_;
  std::unique_ptr<ByteSource> source_;
  std::unique_ptr<BinaryReader> binary_;
  std::string text_;    // what has been read, and bytes past its end as numbers.h asks
  const char* at_;      // the next line
  const char* lines_;   // the end of the last whole line
  size_t filled_ = 0;   // bytes of text_
  bool ended_ = false;  // the source
  int64_t number_ = 1;  // of the next line; of a binary file, of the next sample
  int64_t skipped_ = 0;
  std::string first_skipped_;
};

}  // namespace fleetx::data
