"""A small Llama of `transformers` learns to write Python, from the sources of the standard library.

On 4 ranks: two groups have halves of the batch, and in each group two ranks have halves of the
heads and hidden units. The schedule is one line. Torch trains a model of the same first parameters
on the same text, beside; both losses are printed, and the example ends with an error if they part.
It needs `pip install transformers`. With `--small` one layer does a few steps.
"""

import sys
import sysconfig
import warnings
from pathlib import Path

import torch
from learning import made
from showing import on_device

import distspmd
from distspmd import frontend, launch
from distspmd.runtime import launched_ranks

SMALL = "--small" in sys.argv
LAYERS, STEPS, WIDTH = (1, 6, 32) if SMALL else (3, 60, 64)
BATCH, LENGTH, LETTERS, RANKS = 8, 32, 128, 4
SCHEDULE = frontend.data_parallel(2) * frontend.megatron(2)
APART = 0.01
"""By how much the losses may differ: rounding grows from step to step, as it does in torch."""


def text():
    """The sources of the standard library, a number for each letter."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    letters = b"".join(file.read_bytes() for file in files)
    known = torch.frombuffer(bytearray(letters), dtype=torch.uint8).long()
    return known[known < LETTERS]


def build():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=LETTERS,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)

    def step(letters):
        optimizer.zero_grad()
        loss = model(input_ids=letters, labels=letters).loss
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def train(comm):
    """Train on all ranks; rank 0 prints the losses, and says whether they are torch's."""
    if comm.rank == 0:
        sources = text()
        (_, _, step), (_, _, reference) = made(build), made(build)

    def drawn():
        starts = torch.randint(0, len(sources) - LENGTH, (BATCH,))
        return torch.stack([sources[start : start + LENGTH] for start in starts])

    def lowered():
        return distspmd.lower(frontend.training_step(step, drawn(), name="llama"), SCHEDULE)

    first = last = farthest = 0.0
    with distspmd.compile(lowered, comm) as program:
        for number in range(STEPS):
            if comm.rank != 0:
                program()
                continue
            letters = drawn()
            last, wanted = float(program(letters)), float(reference(letters))
            first, farthest = first or last, max(farthest, abs(last - wanted))
            if number % (STEPS // 5) == 0 or number == STEPS - 1:
                print(f"step {number + 1}: loss {last:.4f}, torch {wanted:.4f}", flush=True)
        program.collect()
    if comm.rank == 0:
        print(f"largest difference of the losses from torch {farthest:.1e}")
    return farthest < APART and last <= first


if __name__ == "__main__":
    if launched_ranks() is None:
        print(SCHEDULE)
        sys.exit(
            launch(
                [Path(__file__).resolve(), *sys.argv[1:]], ranks=RANKS, env=on_device()
            ).returncode
        )
    from mpi4py import MPI

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if not train(MPI.COMM_WORLD):
        sys.exit("training differs from torch")
