"""PyTorch's training losses on real rows of a task, for comparison with the C++ program's.

    python train_losses.py --task text --data PATH --init FILE [--attention SPEC] [--pixel-tokens shifted] [--steps 50]
                           [--batch-size 4] [--max-length N] [--seed 0] [--metrics RUN/metrics.jsonl]

PATH is the folder or archive itself. Sizes and optimizer of the recipe `nystromformer`, no dropout, rows in file order.
Writes the start values to FILE and prints the command that trains the C++ program on the same, then one loss a step.
With --metrics the losses of that run are compared: exit code 1 if one differs by more than 1e-4. With --double the
losses are those of double precision.
"""
import argparse
import itertools
import json
import sys

import safetensors.torch
import torch
import torch.nn.functional as F

import lra_model
import read_data

TOLERANCE = 1e-4


def padded(rows):
    ids = torch.zeros(len(rows), max(1, max(map(len, rows))), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, :len(row)] = torch.tensor(row, dtype=torch.long)
    return ids


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=read_data.READERS, default="listops")
    parser.add_argument("--data", required=True, help="folder or archive")
    parser.add_argument("--pixel-tokens", choices=("raw", "shifted"))
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--init", required=True, help="file to write the start values to")
    parser.add_argument("--attention", default="softmax")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--metrics", help="metrics.jsonl of the C++ program's run")
    o = parser.parse_args()

    torch.manual_seed(o.seed)
    model = lra_model.Classifier(lra_model.Config(**lra_model.TASKS[o.task], dropout=0.0, attention_dropout=0.0,
                                                  attention=o.attention))
    safetensors.torch.save_file(model.state_dict(), o.init)
    extra = "".join(f" --{name} {value}" for name, value in (("pixel-tokens", o.pixel_tokens),
                                                             ("max-length", o.max_length)) if value)
    if o.max_length:
        extra += f" --padded-length {lra_model.TASKS[o.task]['max_len']}"
    print(f"lra-{o.task} --data {o.data} --init {o.init} --attention {o.attention} --order sequential --dropout 0 "
          f"--attention-dropout 0 --batch-size {o.batch_size} --steps {o.steps} --warmup {o.warmup} "
          f"--learning-rate {o.learning_rate} --log-every 1 --eval-every 0{extra} --out RUN", flush=True)

    rows = read_data.read(o.task, o.data, max_length=o.max_length, pixel_tokens=o.pixel_tokens)["train"]
    stream = itertools.cycle(rows)  # starts again at the first row only after the last
    model.to(torch.float64 if o.double else torch.float32).train()
    optimizer, cycle = lra_model.optimizer(model, o.learning_rate, o.steps, o.warmup)
    losses = []
    for step in range(o.steps):
        *documents, labels = zip(*itertools.islice(stream, o.batch_size))
        loss = F.cross_entropy(model(*map(padded, documents)), torch.tensor(labels))
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
