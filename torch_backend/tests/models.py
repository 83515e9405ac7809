"""A small transformer and its one-process training, which sharded training must match."""

import torch
import torch.nn.functional as F
from torch import nn

STEPS = 3
VOCABULARY = 200


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm_in = nn.LayerNorm(width)
        self.project_in = nn.Linear(width, 3 * width, bias=False)
        self.project_out = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 3 * width + 1)
        self.down = nn.Linear(3 * width + 1, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project_in(self.norm_in(x)).chunk(3, -1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2)
        x = x + self.project_out(attended.reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm(x))))


class LanguageModel(nn.Module):
    def __init__(self, width=32, blocks=3):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def make_model():
    """In float64, where the order of a processor's sums is far below what any fault would change."""
    torch.manual_seed(0)
    return LanguageModel().double()


def batches(size):
    """One batch per rank, the same on every rank."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(0, VOCABULARY, (2, 16), generator=generator) for _ in range(size)]


def loss_of(model, tokens):
    return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def train_in_one_process(size):
    """The state after STEPS steps on the mean loss of all ranks' batches, with clipping."""
    model = make_model()
    optimizer = make_optimizer(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (sum(loss_of(model, tokens) for tokens in batches(size)) / size).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return model.state_dict()


def assert_matches(state, size):
    expected = train_in_one_process(size)
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            state[name], value, atol=1e-11, rtol=0, msg=lambda text, name=name: f"{name}: {text}"
        )
