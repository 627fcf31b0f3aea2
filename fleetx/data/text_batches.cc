#include "fleetx/data/text_batches.h"

#include "fleetx/base/error.h"

namespace fleetx::data {

TextBatches::TextBatches(TextBatchOptions options) : options_(options) {
  check_arg(options.world >= 1 && options.rank >= 0 && options.rank < options.world, "rank ",
            options.rank, " of ", options.world, " workers");
  check_arg(!options.packed || (options.batches.tokens > 0 && options.batches.batch == 0),
            "packs need a number of tokens, not of samples");
}

void TextBatches::begin_pass(int64_t epoch) {
  check_arg(epoch >= 0, "epoch is ", epoch, "; must not be negative");
  epoch_ = epoch;
  done_ = 0;
  lengths_ = prepare(epoch);
  if (!options_.packed) {
    list_ = length_batches(lengths_, options_.batches, epoch);
  } else {
    demands_ = demands(options_.batches.tokens);
    list_.clear();
    for (std::vector<int64_t>& samples :
         packs(demands_, {.shuffle = options_.batches.shuffle, .seed = seed()}, epoch))
      list_.push_back({std::move(samples), options_.batches.tokens});
  }
  check_arg(!list_.empty(), lengths_.size(), " samples are less than a batch of ",
            options_.batches.batch);
}

int64_t TextBatches::batches() const {
  return (static_cast<int64_t>(list_.size()) + options_.world - 1) / options_.world;
}

double TextBatches::padding() const {
  return options_.packed ? padding_share(demands_, list_.size()) : padding_share(lengths_, list_);
}

std::optional<Batch> TextBatches::next() {
  if (done_ >= batches()) return std::nullopt;
  const auto place = static_cast<size_t>(done_++ * options_.world + options_.rank);
  const LengthBatch& batch = list_[place % list_.size()];
  return options_.packed ? make_pack(batch.samples) : make(batch);
}

}  // namespace fleetx::data
