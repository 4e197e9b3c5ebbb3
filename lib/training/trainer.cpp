// A training step: examples side by side, the longest first, their gradients summed in a fixed tree, AdamW. The next
// batch is read meanwhile. Several ranks do a subtree each; rank 0 has the sum and updates.
#include "lib/training/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/ops/adamw.h"
#include "lib/training/follow.h"
#include "lib/training/gradient_tree.h"
#include "lib/training/parallel.h"
#include "lib/training/pool.h"
#include "lib/training/prefetch.h"
#include "lib/training/ranks.h"
#include "lib/training/task_fork.h"
#include "lib/util/check.h"
#include "lib/util/phases.h"
#include "lib/util/rng.h"

namespace lra {
namespace {

struct LeafResult {
  double loss = 0.0, flops = 0.0;
  bool correct = false;
  bool spare = false;  // threads have nothing else to do meanwhile
  int64_t tokens = 0;
};

// What one AdamW call updates: trained tensors in pieces of at most kPiece, whose bounds depend on the layout alone.
std::vector<ParameterRange> update_pieces(const ParameterLayout& layout) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<ParameterRange> pieces;
  for (const ParameterRange& range : layout.trained_ranges()) {
    for (int64_t at = 0; at < range.size; at += kPiece) {
      pieces.push_back({range.begin + at, std::min(kPiece, range.size - at)});
    }
  }
  return pieces;
}

}  // namespace

struct Trainer::Workspace {
  Workspace(const Classifier& model, const ExampleSource& data, const TrainerSettings& settings, const Ranks* ranks,
            BatchModel* device)
      : model(model),
        ranks(ranks),
        device(device),
        share(settings.batch_size / (ranks == nullptr ? 1 : ranks->count())),
        first(ranks == nullptr ? 0 : ranks->rank() * share),
        weight(1.0f / static_cast<float>(settings.batch_size)),
        order(data.size(), settings.batch_size, settings.seed, settings.shuffled),
        prefetch(data),
        pieces(update_pieces(model.layout())),
        leaves(static_cast<size_t>(share)),
        arenas([] { return std::make_unique<Arena>(); }),
        buffers([&model] { return std::make_unique<GradientBuffer>(model.layout()); }),
        tree(share) {}

  // Rows of this rank's share of a batch.
  std::vector<int64_t> rows_of(int64_t batch) {
    const std::vector<int64_t> rows = order.rows(batch);
    return {rows.begin() + first, rows.begin() + first + share};
  }

  // The gradients of batch number `batch`, summed at rank 0; fills leaves.
  GradientTree::Gradients sum(int64_t batch, uint64_t seed) {
    dropout_key = random_key(seed, RandomStream::kDropout, static_cast<uint64_t>(batch));
    GradientTree::Gradients sum = device == nullptr ? sum_of_share(batch) : sum_on_device(batch);
    if (ranks == nullptr || ranks->count() == 1) return sum;
    // The upper levels of the tree: of two neighbouring sums the left one's rank goes on.
    for (int apart = 1; apart < ranks->count(); apart *= 2) {
      if (ranks->rank() % (2 * apart) != 0) {
        const int64_t end = sum->used_end();
        ranks->send(std::span(&end, 1), ranks->rank() - apart);
        ranks->send(std::span<const float>(sum->values()), ranks->rank() - apart);
        break;
      }
      const GradientTree::Gradients right = buffers.borrow();
      int64_t end = 0;
      ranks->receive(std::span(&end, 1), ranks->rank() + apart);
      ranks->receive(right->values(), ranks->rank() + apart);
      right->set_used_end(end);
      sum->add(*right);
    }
    return sum;
  }

  // Of all ranks, at rank 0.
  std::vector<LeafResult> all_leaves() const {
    if (ranks == nullptr) return leaves;
    std::vector<LeafResult> all(leaves.size() * static_cast<size_t>(ranks->count()));
    ranks->gather(std::span<const LeafResult>(leaves), std::span(all));
    return all;
  }

  // Reads the examples of batch number `batch`, and those of the next one meanwhile.
  void take(int64_t batch) {
    if (next_batch != batch) next_rows = rows_of(batch);
    {
      const PhaseScope phase(Phase::kData);
      examples = prefetch.take(next_rows);
    }
    next_batch = batch + 1;
    next_rows = rows_of(next_batch);
    prefetch.begin(next_rows);
  }

  GradientTree::Gradients sum_of_share(int64_t batch) {
    take(batch);
    constexpr int64_t kWaitingBytes = int64_t{64} << 20;
    std::vector<double> costs(examples.size());
    for (size_t place = 0; place < examples.size(); ++place) {
      costs[place] = leaves[place].flops = model.flops(examples[place], true, false);
    }
    const int64_t buffer_bytes = model.layout().size() * static_cast<int64_t>(sizeof(float));
    const std::vector<int64_t> places = longest_first(costs, kWaitingBytes / buffer_bytes);
    for (int64_t i = 0; i < std::ssize(places); ++i) {
      leaves[static_cast<size_t>(places[static_cast<size_t>(i)])].spare = threads_to_spare(i, std::ssize(places));
    }
    return tree.sum(places, [&](int64_t place) { return leaf(place); });
  }

  // By the device, which has nothing but the parameters that rank 0 sent.
  GradientTree::Gradients sum_on_device(int64_t batch) {
    take(batch);
    device->load(model.parameters(), {}, {});
    train_on_device();
    GradientTree::Gradients sum = buffers.borrow();
    int64_t places = 0;
    for (const Example& example : examples) places = std::max(places, used_places(model.config(), example));
    sum->start(places);
    const std::vector<float> gradients = device->gradients();
    std::copy(gradients.begin(), gradients.end(), sum->values().begin());
    return sum;
  }
  // Fills leaves; the gradients stay on the device.
  void train_on_device() {
    const std::vector<ExampleResult> trained =
        device->train(examples, weight, {dropout_key, static_cast<uint32_t>(first)});
    for (size_t i = 0; i < trained.size(); ++i) {
      const Example& example = examples[i];
      leaves[i] = {.loss = trained[i].loss,
                   .flops = model.flops(example, true, !device->linear()),
                   .correct = trained[i].predicted == example.label,
                   .tokens = std::ssize(example.first.ids) + std::ssize(example.second.ids)};
    }
  }

  GradientTree::Gradients leaf(int64_t place) {
    const Example& example = examples[static_cast<size_t>(place)];
    LeafResult& result = leaves[static_cast<size_t>(place)];
    result.tokens = static_cast<int64_t>(example.first.ids.size() + example.second.ids.size());
    GradientTree::Gradients gradients = buffers.borrow();
    gradients->start(used_places(model.config(), example));
    const Pool<Arena>::Loan arena = arenas.borrow();
    arena->reset();
    // Nothing else runs on this thread while the scratch is in use, whatever threading library is inside the ops.
    ExampleResult trained;
    isolated([&] {
      trained = model.train(example, weight, {dropout_key, static_cast<uint32_t>(first + place)}, gradients->values(),
                            *arena, result.spare ? &fork : nullptr);
    });
    result.loss = trained.loss;
    result.correct = trained.predicted == example.label;
    return gradients;
  }

  const Classifier& model;
  const Ranks* ranks;
  BatchModel* device;
  const int64_t share, first;  // of a batch: examples of this rank, place of its first
  const float weight;          // of an example's loss
  BatchOrder order;
  Prefetch prefetch;
  int64_t next_batch = -1;  // whose rows are next_rows
  std::vector<int64_t> next_rows;
  std::vector<ParameterRange> pieces;
  std::vector<Example> examples;          // of the current batch
  std::array<uint32_t, 2> dropout_key{};  // of the current step
  std::vector<LeafResult> leaves;
  Pool<Arena> arenas;
  TaskFork fork;
  Pool<GradientBuffer> buffers;
  GradientTree tree;
};

void check_ranks(int64_t batch_size, int ranks) {
  if (!std::has_single_bit(static_cast<unsigned>(ranks)) || batch_size % ranks != 0) {
    throw UsageError(
        "batch_size: {} examples on {} processes; want a number of processes that is a power of two and divides it",
        batch_size, ranks);
  }
}

Trainer::Trainer(Classifier& model, const ExampleSource& data, const TrainerSettings& settings, const Ranks* ranks,
                 BatchModel* device)
    : model_(model),
      data_(data),
      settings_(settings),
      ranks_(ranks),
      device_(device),
      m_(model.parameters().size()),
      v_(model.parameters().size()) {
  check_ranks(settings.batch_size, ranks == nullptr ? 1 : ranks->count());
  workspace_ = std::make_unique<Workspace>(model_, data_, settings_, ranks, device);
}

Trainer::~Trainer() = default;

namespace {

// Of the step after `steps_done`, but for the gradient's norm.
StepResult step_result(const std::vector<LeafResult>& leaves, const Rate& rate, int64_t steps_done) {
  StepResult result;
  result.step = steps_done + 1;
  for (const LeafResult& leaf : leaves) {
    result.loss += leaf.loss;
    result.accuracy += leaf.correct ? 1.0 : 0.0;
    result.tokens += leaf.tokens;
    result.flops += leaf.flops;
  }
  result.loss /= static_cast<double>(leaves.size());
  result.accuracy /= static_cast<double>(leaves.size());
  result.learning_rate = rate.learning_rate;
  return result;
}

// Sets the norm; false where the step must not be made.
bool set_norm(StepResult& result, double norm) {
  result.gradient_norm = norm;
  result.finite = std::isfinite(result.loss) && std::isfinite(norm);
  return result.finite;
}

// What gradients are multiplied with, as torch.nn.utils.clip_grad_norm_ does it.
float clip_factor(const TrainerSettings& settings, double norm) {
  const bool clips = settings.clip_norm > 0.0 && norm > settings.clip_norm;
  return clips ? static_cast<float>(settings.clip_norm / (norm + 1e-6)) : 1.0f;
}

AdamWSettings adamw_settings(const TrainerSettings& settings, const Rate& rate) {
  return {rate.learning_rate, rate.beta1, settings.beta2, settings.epsilon, settings.weight_decay};
}

}  // namespace

StepResult Trainer::step() {
  const bool alone = ranks_ == nullptr || ranks_->count() == 1;
  if (device_ != nullptr && alone) return step_on_device();
  Workspace& work = *workspace_;
  if (ranks_ != nullptr)
    begin_task(*ranks_, {.kind = RankTask::Kind::kTrain, .step = steps_done_}, model_.parameters());
  const GradientTree::Gradients summed = work.sum(steps_done_, settings_.seed);
  const std::vector<LeafResult> leaves = work.all_leaves();
  const PhaseScope phase(Phase::kUpdate);
  const std::span<float> gradients = summed->finish();

  const Rate rate = schedule_rate(settings_.schedule, steps_done_);
  StepResult result = step_result(leaves, rate, steps_done_);
  if (!set_norm(result, l2_norm(gradients))) return result;

  const float factor = clip_factor(settings_, result.gradient_norm);
  if (factor != 1.0f) {
    for (float& gradient : gradients) gradient *= factor;
  }
  const AdamWSettings adamw = adamw_settings(settings_, rate);
  const std::span<float> parameters = model_.parameters();
  parallel_for(std::ssize(work.pieces), [&](int64_t i) {
    const PhaseScope piece_phase(Phase::kUpdate);
    const ParameterRange& range = work.pieces[static_cast<size_t>(i)];
    const auto piece = [&](auto values) {
      return values.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size));
    };
    adamw_update(adamw, result.step, piece(parameters), piece(std::span<const float>(gradients)),
                 piece(std::span<float>(m_)), piece(std::span<float>(v_)));
  });
  ++steps_done_;
  return result;
}

StepResult Trainer::step_on_device() {
  Workspace& work = *workspace_;
  if (!on_device_) device_->load(model_.parameters(), m_, v_);
  on_device_ = true;
  work.take(steps_done_);
  work.dropout_key = random_key(settings_.seed, RandomStream::kDropout, static_cast<uint64_t>(steps_done_));
  work.train_on_device();
  const Rate rate = schedule_rate(settings_.schedule, steps_done_);
  StepResult result = step_result(work.leaves, rate, steps_done_);
  if (!set_norm(result, device_->gradient_norm())) return result;
  device_->update(adamw_settings(settings_, rate), result.step, clip_factor(settings_, result.gradient_norm));
  ++steps_done_;
  return result;
}

void Trainer::fetch() {
  if (on_device_) device_->store(model_.parameters(), m_, v_);
}

void Trainer::contribute(int64_t steps_done) {
  workspace_->sum(steps_done, settings_.seed);
  workspace_->all_leaves();
}

}  // namespace lra
