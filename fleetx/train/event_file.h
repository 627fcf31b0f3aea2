// Scalars and histograms for TensorBoard: a file of events that grows while training runs. Every
// event is on the disk when the call returns, so that TensorBoard sees it and a killed run loses
// nothing.
//
//   EventFile events("runs/first");
//   events.scalar("train/loss", step, loss);
//
// The format: records of length, checksum of the length, data and checksum of the data; the data is
// protobuf (tensorflow.Event), written here by hand, as few of its fields are used.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fleetx/base/fd.h"

namespace fleetx::train {

class EventFile {
 public:
  // Makes the folder and a new file in it, events.out.tfevents.<seconds>.<host>.<process>.<number>.
  explicit EventFile(const std::string& folder);

  void scalar(std::string_view tag, int64_t step, double value);
  // How often values are in each of 30 equal parts of their range. Those that are not finite are
  // left out; where none is left nothing is written.
  void histogram(std::string_view tag, int64_t step, std::span<const float> values);
  const std::string& path() const { return path_; }

 private:
  // A value of tensorflow.Summary, after its tag.
  void add(std::string_view tag, int64_t step, const std::string& value);
  void write(const std::string& event);

  std::string path_;
  Fd file_;
};

// CRC-32C (Castagnoli), as the records have it before it is masked.
uint32_t crc32c(std::string_view bytes);

}  // namespace fleetx::train
