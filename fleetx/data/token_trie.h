// The longest token that a text begins with. Edges (node, byte) -> node lie in one hash table, so
// that a step is one look into memory. Immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::data {

class TokenTrie {
 public:
  struct Match {
    int32_t token = -1;  // none
    size_t length = 0;   // bytes
  };

  explicit TokenTrie(const std::vector<std::string>& tokens);

  static constexpr uint32_t kRoot = 0;
  // The node of a text; -1: no token begins with it.
  int64_t node_of(std::string_view text) const;
  // Of the tokens that go on from `node`.
  Match longest(uint32_t node, std::string_view text) const {
    Match best;
    for (size_t i = 0; i < text.size(); ++i) {
      const Edge* edge = find(node, static_cast<unsigned char>(text[i]));
      if (edge == nullptr) break;
      node = edge->child;
      if (edge->token >= 0) best = {edge->token, i + 1};
    }
    return best;
  }

 private:
  struct Edge {
    uint32_t key = kFree;  // node << 8 | byte
    uint32_t child = 0;
    int32_t token = -1;  // that ends here
  };
  static constexpr uint32_t kFree = ~uint32_t{0};

  size_t slot(uint32_t key) const { return key * 0x9e3779b97f4a7c15ull >> shift_; }
  const Edge* find(uint32_t node, unsigned char byte) const {
    const uint32_t key = node << 8 | byte;
    for (size_t i = slot(key);; i = (i + 1) & (edges_.size() - 1)) {
      if (edges_[i].key == key) return &edges_[i];
      if (edges_[i].key == kFree) return nullptr;
    }
  }
  Edge& find_or_add(uint32_t node, unsigned char byte);
  void resize(size_t slots);

  std::vector<Edge> edges_;
  int shift_ = 0;
  uint32_t nodes_ = 1;
};

}  // namespace fleetx::data
