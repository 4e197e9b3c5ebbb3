"""Loads checkpoints of the C++ program into the reference and compares logits.

    python check_checkpoint.py CHECKPOINT LOGITS     one checkpoint; LOGITS is a safetensors file with `ids` (B, N),
                                                     `ids2` for pairs, and `logits` (B, classes) of the C++ program
    python check_checkpoint.py --program PROGRAM     all that tests/golden/checkpoint_logits writes

Exit code 1 if a checkpoint does not load or its logits differ, 77 (skipped) without torch or safetensors.
"""
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 2e-5      # float32 on both sides, relative to logits of size 1 or more


def check(checkpoint, logits):
    import safetensors
    import safetensors.torch
    import torch

    import checkpoint_config
    import lra_model

    with safetensors.safe_open(checkpoint, "pt") as file:
        config = checkpoint_config.config_of(file.metadata())
    model = lra_model.Classifier(config)
    model.load_state_dict(safetensors.torch.load_file(checkpoint))
    ours = safetensors.torch.load_file(logits)
    inputs = [ours[name].long() for name in ("ids", "ids2") if name in ours]
    with torch.no_grad():
        theirs = model.eval()(*inputs)
    error = float(((ours["logits"] - theirs).abs() / theirs.abs().clamp(min=1)).max())
    same = error <= TOLERANCE          # NaN is not
    print(f"{'ok  ' if same else 'FAIL'} {checkpoint}: logits differ by {error:.1e} (at most {TOLERANCE:g})")
    return same


def main():
    arguments = sys.argv[1:]
    if len(arguments) != 2:
        sys.exit(__doc__)
    try:
        import safetensors.torch  # noqa: F401
        import torch  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    if arguments[0] != "--program":
        sys.exit(0 if check(*arguments) else 1)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments[1], folder], check=True)
        files = sorted(f for f in pathlib.Path(folder).glob("*.safetensors") if ".logits." not in f.name)
        results = [check(f, f.with_suffix(".logits.safetensors")) for f in files]
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
