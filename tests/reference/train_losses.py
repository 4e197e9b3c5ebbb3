"""PyTorch's training losses on real ListOps rows, for comparison with the C++ program's.

    python train_losses.py --data FOLDER --init FILE [--attention SPEC] [--steps 20] [--batch-size 8] [--seed 0]
                           [--metrics RUN/metrics.jsonl]

Sizes and optimizer of the recipe `nystromformer`, no dropout, rows in file order. Writes the start values to FILE and
prints one loss a step, and the command that trains the C++ program on the same. With --metrics the losses of that run are
compared: exit code 1 if one differs by more than 1e-4. With --double the losses are those of double precision.
"""
import argparse
import json
import pathlib
import sys

import safetensors.torch
import torch
import torch.nn.functional as F

import lra_model

TOKENS = {str(digit): digit + 1 for digit in range(10)} | {"[MAX": 11, "[MIN": 12, "[MED": 13, "[SM": 14, "]": 15}
TOLERANCE = 1e-4


def read_rows(folder, count, max_length):
    """The first rows of basic_train.tsv: (ids, label)."""
    rows = []
    with open(pathlib.Path(folder) / "basic_train.tsv") as file:
        next(file)
        for line in file:
            source, target = line.rstrip("\r\n").split("\t")
            rows.append(([TOKENS[word] for word in source.split() if word not in "()"][:max_length], int(target)))
            if len(rows) == count:
                break
    return rows


def batch(rows, size, step):
    """Rows [step·size, (step+1)·size) of file order repeated, padded to the longest."""
    chosen = [rows[(step * size + i) % len(rows)] for i in range(size)]
    ids = torch.zeros(size, max(len(ids) for ids, _ in chosen), dtype=torch.long)
    for i, (row, _) in enumerate(chosen):
        ids[i, :len(row)] = torch.tensor(row)
    return ids, torch.tensor([label for _, label in chosen])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with basic_train.tsv")
    parser.add_argument("--init", required=True, help="file to write the start values to")
    parser.add_argument("--attention", default="softmax")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--metrics", help="metrics.jsonl of the C++ program's run")
    o = parser.parse_args()

    torch.manual_seed(o.seed)
    model = lra_model.Classifier(lra_model.Config(**lra_model.TASKS["listops"], dropout=0.0, attention_dropout=0.0,
                                                  attention=o.attention))
    safetensors.torch.save_file(model.state_dict(), o.init)
    print(f"lra-listops --data {o.data} --init {o.init} --attention {o.attention} --order sequential --dropout 0 "
          f"--attention-dropout 0 --batch-size {o.batch_size} --steps {o.steps} --warmup {o.warmup} "
          f"--learning-rate {o.learning_rate} --log-every 1 --eval-every 0 --out RUN", flush=True)

    # All rows of the file: the stream starts again at the first row only after the last.
    rows = read_rows(o.data, 1 << 62, 2000)
    model.to(torch.float64 if o.double else torch.float32).train()
    optimizer, cycle = lra_model.optimizer(model, o.learning_rate, o.steps, o.warmup)
    losses = []
    for step in range(o.steps):
        ids, labels = batch(rows, o.batch_size, step)
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step + 1 < o.steps:
            cycle.step()
        losses.append(float(loss.detach()))
        print(f"{step + 1} {losses[-1]:.7f}", flush=True)

    if o.metrics:
        with open(o.metrics) as file:
            lines = [json.loads(line) for line in file]
        ours = {line["step"]: line["loss"] for line in lines if line["split"] == "train"}
        differences = [abs(ours[step] - loss) for step, loss in enumerate(losses, 1) if step in ours]
        worst = max(differences) if differences else float("nan")
        same = len(differences) > 0 and worst <= TOLERANCE
        print(f"{'ok' if same else 'FAIL'}: {len(differences)} losses compared, largest difference {worst:.1e} "
              f"(at most {TOLERANCE:g})")
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
