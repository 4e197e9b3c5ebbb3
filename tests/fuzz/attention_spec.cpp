// Attention specs as they come from a command line, a grid or a checkpoint's metadata.
#include "lib/attention/registry.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

void attention_spec(Bytes bytes) {
  accepts([&] {
    const AttentionSpec spec = parse_attention(std::string(text_of(bytes)));
    const std::string canonical = spec.canonical();
    AttentionSpec again;
    require(accepts([&] { again = parse_attention(canonical); }), "the canonical spec " + canonical + " is refused");
    require(again.canonical() == canonical && again.options == spec.options, canonical + " is read as another");
    const std::string slug = spec.slug();
    require(!slug.empty() && slug.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos,
            "the slug is no file name");
    dump_json(spec.options_json());
    for (const int n : {1, 17}) make_attention(spec, {.heads = 2, .head_dim = 4, .padded_length = n, .dim = 8});
  });
}

}  // namespace lra::fuzz
