#include "fleetx/data/binary_samples.h"

#include <algorithm>
#include <cstring>

#include "fleetx/base/checksum.h"
#include "fleetx/base/names.h"

namespace fleetx::data {
namespace {

// A block is read, summed and unpacked while it is in the cache of a core.
constexpr size_t kBlockValues = size_t{1} << 16;
constexpr uint64_t kMaxBlockBytes = uint64_t{1} << 30, kMaxSlotBytes = uint64_t{1} << 24;

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct BlockHeader {
  uint64_t samples = 0, bytes = 0, checksum = 0;
};
static_assert(sizeof(BlockHeader) == 24);

uint64_t checksum_of(const BlockHeader& header, std::string_view bytes) {
  return mix(word_checksum(bytes), mix(header.samples, header.bytes));
}

std::string slots_text(const std::vector<Slot>& slots) {
  std::string out;
  put(out, static_cast<uint32_t>(slots.size()));
  for (const Slot& slot : slots) {
    put(out, static_cast<uint32_t>(slot.name.size()));
    out += slot.name;
    put(out, static_cast<uint8_t>(slot.dtype == DType::kF32));
    put(out, slot.width);
  }
  return out;
}

// The slots of a header, whatever it contains.
class SlotParser {
 public:
  SlotParser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::vector<Slot> all() {
    std::vector<Slot> slots;
    const auto number = take<uint32_t>();
    for (uint32_t i = 0; i < number; ++i) {
      Slot& slot = slots.emplace_back();
      const auto size = take<uint32_t>();
      check(size <= bytes_.size());
      slot.name = bytes_.substr(0, size);
      bytes_.remove_prefix(size);
      slot.dtype = take<uint8_t>() == 0 ? DType::kI64 : DType::kF32;
      slot.width = take<int64_t>();
    }
    check(bytes_.empty());
    return slots;
  }

 private:
  void check(bool ok) const { check_file(ok, name_, ": damaged: the list of its slots"); }
  template <class T>
  T take() {
    check(bytes_.size() >= sizeof(T));
    T value{};
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view bytes_;
  const std::string& name_;
};

size_t values_of(const Samples& samples) {
  size_t n = 0;
  for (const Column& c : samples.columns) n += c.values.size();
  return n;
}

}  // namespace

BinaryWriter::BinaryWriter(const std::string& path, std::vector<Slot> slots)
    : slots_(std::move(slots)), file_(path), waiting_(slots_) {
  check_slots(slots_);
  const std::string text = slots_text(slots_);
  std::string header(kBinaryMagic);
  put(header, uint64_t{text.size()});
  header += text;
  put(header, word_checksum(text));
  file_.write(header);
}

void BinaryWriter::add(const Samples& samples) {
  constexpr int64_t kAtOnce = 64;
  for (int64_t at = 0; at < samples.count; at += kAtOnce) {
    waiting_.append(samples, at, std::min(kAtOnce, samples.count - at));
    if (values_of(waiting_) >= kBlockValues) write_block();
  }
}

void BinaryWriter::write_block() {
  const std::string bytes = pack(waiting_);
  BlockHeader header{static_cast<uint64_t>(waiting_.count), bytes.size(), 0};
  header.checksum = checksum_of(header, bytes);
  file_.write(&header, sizeof header);
  file_.write(bytes);
  written_ += waiting_.count;
  waiting_ = Samples(slots_);
}

int64_t BinaryWriter::finish() {
  if (waiting_.count > 0) write_block();
  BlockHeader end{0, static_cast<uint64_t>(written_), 0};
  end.checksum = checksum_of(end, {});
  file_.write(&end, sizeof end);
  file_.finish();
  return written_;
}

BinaryReader::BinaryReader(std::unique_ptr<ByteSource> source, std::string begin, std::string name,
                           const std::vector<Slot>& wanted)
    : source_(std::move(source)), begin_(std::move(begin)), name_(std::move(name)) {
  read_slots();
  choose(wanted);
}

bool BinaryReader::fill(char* to, size_t bytes) {
  size_t done = std::min(bytes, begin_.size() - begun_);
  std::memcpy(to, begin_.data() + begun_, done);
  begun_ += done;
  while (done < bytes) {
    const size_t got = source_->read(to + done, bytes - done);
    if (got == 0 && done == 0) return false;
    check_file(got > 0, name_, ": it is cut off");
    done += got;
  }
  return true;
}

// The memory grows with what really comes: a damaged number must not ask for all of it.
std::string BinaryReader::take(uint64_t bytes) {
  std::string out;
  while (out.size() < bytes) {
    const size_t at = out.size();
    const uint64_t next = std::min<uint64_t>(bytes - at, std::max<uint64_t>(at, 1 << 20));
    out.resize(at + next);
    check_file(fill(out.data() + at, next), name_, ": it is cut off");
  }
  return out;
}

void BinaryReader::read_slots() {
  check_file(take(kBinaryMagic.size()) == kBinaryMagic, name_, ": not a binary file of samples");
  uint64_t bytes = 0, sum = 0;
  check_file(fill(reinterpret_cast<char*>(&bytes), sizeof bytes), name_, ": it is cut off");
  check_file(bytes <= kMaxSlotBytes, name_, ": damaged: ", bytes, " bytes of slots");
  const std::string text = take(bytes);
  check_file(fill(reinterpret_cast<char*>(&sum), sizeof sum) && sum == word_checksum(text), name_,
             ": damaged (checksum of the slots)");
  slots_ = SlotParser(text, name_).all();
  try {
    check_slots(slots_);
  } catch (const Error& e) {
    fail(Error::Kind::kCorrupt, str(name_, ": damaged: ", e.what()));
  }
}

void BinaryReader::choose(const std::vector<Slot>& wanted) {
  std::vector<std::string> names;
  for (const Slot& slot : slots_) names.push_back(slot.name);
  for (const Slot& slot : wanted) {
    const auto found = std::ranges::find(slots_, slot.name, &Slot::name);
    check_arg(found != slots_.end(), name_, ": it has no slot '", slot.name, "'; it has ",
              join(names, ", "), did_you_mean(slot.name, names));
    check_arg(found->dtype == slot.dtype, name_, ": slot '", slot.name, "' is ",
              name_of(found->dtype), ", expected ", name_of(slot.dtype));
    check_arg(slot.width == -1 || slot.width == found->width, name_, ": slot '", slot.name,
              "' has ", found->width < 0 ? "any number of" : str(found->width),
              " values, expected ", slot.width);
    which_.push_back(static_cast<size_t>(found - slots_.begin()));
  }
}

bool BinaryReader::next_block() {
  BlockHeader header;
  // Where a reader is stopped, its source ends; a file that ends here without its last block has
  // been cut off.
  check_file(fill(reinterpret_cast<char*>(&header), sizeof header), name_, ": it is cut off");
  if (header.samples == 0) {
    check_file(
        header.checksum == checksum_of(header, {}) && header.bytes == static_cast<uint64_t>(read_),
        name_, ": damaged: it ends after ", read_, " samples");
    char more = 0;
    check_file(!fill(&more, 1), name_, ": damaged: it goes on after its end");
    ended_ = true;
    return false;
  }
  check_file(header.bytes <= kMaxBlockBytes, name_, ": damaged: a block of ", header.bytes,
             " bytes");
  if (bytes_.size() < header.bytes)
    bytes_ = take(header.bytes);
  else
    check_file(header.bytes == 0 || fill(bytes_.data(), header.bytes), name_, ": it is cut off");
  const std::string_view bytes(bytes_.data(), header.bytes);
  check_file(header.checksum == checksum_of(header, bytes), name_, ": damaged (checksum) after ",
             read_, " samples");
  block_ = PackedSamples(bytes, static_cast<int64_t>(header.samples), slots_, name_);
  read_ += block_.count();
  at_ = 0;
  return true;
}

int64_t BinaryReader::read(int64_t n, Samples& to) {
  if (ended_ || (at_ == block_.count() && !next_block())) return 0;
  const int64_t count = std::min(n, block_.count() - at_);
  block_.read(at_, count, which_, to);
  at_ += count;
  return count;
}

}  // namespace fleetx::data
