// The binary form of sample files, which `fleetx convert` writes: many times as fast to read as
// text, smaller, and checked by sums.
//
//   "FLEETXS1", u64 bytes, the slots (u32 number; each: u32 bytes, name, u8 1 for f32, i64 width),
//   u64 checksum of the slots
//   per block:  u64 samples, u64 bytes, u64 checksum; then packed samples (packed_samples.h)
//   the end:    u64 0, u64 samples of the file, u64 checksum
//
// Numbers are little-endian. The slots are in the file, so that a reader may ask for some of them
// in any order, by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/file.h"
#include "fleetx/data/byte_source.h"
#include "fleetx/data/packed_samples.h"

namespace fleetx::data {

inline constexpr std::string_view kBinaryMagic = "FLEETXS1";

class BinaryWriter {
 public:
  BinaryWriter(const std::string& path, std::vector<Slot> slots);
  void add(const Samples& samples);
  int64_t finish();  // the number of samples; without it the file is damaged

 private:
  void write_block();

  std::vector<Slot> slots_;
  FileWriter file_;
  Samples waiting_;
  int64_t written_ = 0;
};

class BinaryReader {
 public:
  // `begin`: what has been read of the source already, the magic at least. A slot of `wanted` that
  // the file does not have, or has in another form, is kInvalidArgument.
  BinaryReader(std::unique_ptr<ByteSource> source, std::string begin, std::string name,
               const std::vector<Slot>& wanted);
  // Adds at most n samples and says how many; 0: the end.
  int64_t read(int64_t n, Samples& to);

 private:
  // False: the source ends before the first byte.
  bool fill(char* to, size_t bytes);
  std::string take(uint64_t bytes);
  void read_slots();
  void choose(const std::vector<Slot>& wanted);
  bool next_block();

  std::unique_ptr<ByteSource> source_;
  std::string begin_;
  size_t begun_ = 0;
  std::string name_;
  std::vector<Slot> slots_;
  std::vector<size_t> which_;
  std::string bytes_;  // of the block, and maybe more of an earlier one
  PackedSamples block_;
  int64_t at_ = 0;  // in the block
  int64_t read_ = 0;
  bool ended_ = false;
};

}  // namespace fleetx::data
