#include "fleetx/data/token_trie.h"

#include <bit>
#include <string>
#include <utility>

#include "fleetx/base/error.h"

namespace fleetx::data {

TokenTrie::TokenTrie(const std::vector<std::string>& tokens) {
  size_t bytes = 0;  // as many edges at most
  for (const std::string& token : tokens) bytes += token.size();
  check_arg(bytes < size_t{1} << 24, "a vocabulary of ", bytes, " bytes; at most 16 MiB");
  resize(std::bit_ceil(2 * bytes + 2));
  for (size_t id = 0; id < tokens.size(); ++id) {
    uint32_t node = kRoot;
    Edge* last = nullptr;
    for (const char c : tokens[id]) {
      last = &find_or_add(node, static_cast<unsigned char>(c));
      node = last->child;
    }
    if (last != nullptr) last->token = static_cast<int32_t>(id);
  }
  resize(std::bit_ceil(3 * size_t{nodes_} / 2 + 2));  // tokens share edges; the rest stays cached
}

void TokenTrie::resize(size_t slots) {
  const std::vector<Edge> before = std::exchange(edges_, std::vector<Edge>(slots));
  shift_ = 64 - std::countr_zero(slots);
  for (const Edge& edge : before) {
    if (edge.key == kFree) continue;
    size_t i = slot(edge.key);
    while (edges_[i].key != kFree) i = (i + 1) & (slots - 1);
    edges_[i] = edge;
  }
}

TokenTrie::Edge& TokenTrie::find_or_add(uint32_t node, unsigned char byte) {
  const uint32_t key = node << 8 | byte;
  size_t i = slot(key);
  while (edges_[i].key != key && edges_[i].key != kFree) i = (i + 1) & (edges_.size() - 1);
  if (edges_[i].key == kFree) edges_[i] = {key, nodes_++, -1};
  return edges_[i];
}

int64_t TokenTrie::node_of(std::string_view text) const {
  uint32_t node = kRoot;
  for (const char c : text) {
    const Edge* edge = find(node, static_cast<unsigned char>(c));
    if (edge == nullptr) return -1;
    node = edge->child;
  }
  return node;
}

}  // namespace fleetx::data
