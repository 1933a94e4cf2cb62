"""Fifty networks in KernelBench's form, of the kinds that its level 3 has, written for this project: each a text of one
file. They are counted by `experiments/networks.py`; a few are tests.

Texts of blocks come first; a network is the blocks that it needs, its class, its sizes and its inputs.
"""

from textwrap import dedent

HEAD = "import math\n\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"

BASIC_BLOCK = """
class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.downsample = None
        if stride != 1 or inner != outer:
            self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        skip = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(x)) + skip)
"""

BOTTLENECK = """
class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inner, width, stride=1, groups=1):
        super().__init__()
        outer = width * self.expansion
        self.conv1, self.bn1 = nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer)
        self.shortcut = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))
"""

RESNET = """
class Model(nn.Module):
    def __init__(self, layers, num_classes):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        self.inner = 64
        widths = (64, 128, 256, 512)
        self.stages = nn.Sequential(*[self._stage(w, n, 1 + (i > 0)) for i, (w, n) in enumerate(zip(widths, layers))])
        self.fc = nn.Linear(512 * Block.expansion, num_classes)

    def _stage(self, width, count, stride):
        blocks = []
        for number in range(count):
            blocks.append(Block(self.inner, width, stride if number == 0 else 1))
            self.inner = width * Block.expansion
        return nn.Sequential(*blocks)

    def forward(self, x):
        x = self.stages(self.stem(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))

batch_size = {batch}
num_classes = 1000
height = 224
width = 224

def get_inputs():
    return [torch.randn(batch_size, 3, height, width)]

def get_init_inputs():
    return [{layers}, num_classes]
"""

INCEPTION = """
class Inception(nn.Module):
    def __init__(self, inner, c1, r3, c3, r5, c5, pool):
        super().__init__()
        self.b1 = nn.Conv2d(inner, c1, 1)
        self.b3 = nn.Sequential(nn.Conv2d(inner, r3, 1), nn.Conv2d(r3, c3, 3, padding=1))
        self.b5 = nn.Sequential(nn.Conv2d(inner, r5, 1), nn.Conv2d(r5, c5, 5, padding=2))
        self.bp = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(inner, pool, 1))

    def forward(self, x):
        return torch.cat([self.b1(x), self.b3(x), self.b5(x), self.bp(x)], 1)
"""

DENSE_BLOCK = """
class DenseBlock(nn.Module):
    def __init__(self, count, inner, growth):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(inner + i * growth), nn.ReLU(inplace=True),
                nn.Conv2d(inner + i * growth, growth, 3, padding=1, bias=False), nn.Dropout(0.0),
            )
            for i in range(count)
        )

    def forward(self, x):
        parts = [x]
        for layer in self.layers:
            parts.append(layer(torch.cat(parts, 1)))
        return torch.cat(parts, 1)
"""

TRANSITION = """
class Transition(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.net = nn.Sequential(
            nn.BatchNorm2d(inner), nn.ReLU(inplace=True), nn.Conv2d(inner, outer, 1, bias=False), nn.AvgPool2d(2, 2)
        )

    def forward(self, x):
        return self.net(x)
"""

DENSENET = """
class Model(nn.Module):
    def __init__(self, counts, growth, num_classes):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        channels, blocks = 64, []
        for number, count in enumerate(counts):
            blocks.append(DenseBlock(count, channels, growth))
            channels += count * growth
            if number < len(counts) - 1:
                blocks.append(Transition(channels, channels // 2))
                channels //= 2
        self.blocks = nn.Sequential(*blocks)
        self.norm, self.head = nn.BatchNorm2d(channels), nn.Linear(channels, num_classes)

    def forward(self, x):
        x = F.relu(self.norm(self.blocks(self.stem(x))))
        return self.head(F.adaptive_avg_pool2d(x, (1, 1)).view(x.size(0), -1))

batch_size = 10
num_classes = {classes}
height, width = 224, 224

def get_inputs():
    return [torch.randn(batch_size, 3, height, width)]

def get_init_inputs():
    return [{counts}, 32, num_classes]
"""

FIRE = """
class Fire(nn.Module):
    def __init__(self, inner, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inner, squeeze, 1)
        self.one, self.three = nn.Conv2d(squeeze, expand, 1), nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)
"""

INVERTED = """
class Inverted(nn.Module):
    def __init__(self, inner, outer, kernel, stride, expand, squeeze=0):
        super().__init__()
        hidden = inner * expand
        self.skips = stride == 1 and inner == outer
        layers = []
        if expand != 1:
            layers += [nn.Conv2d(inner, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True)]
        layers += [
            nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True),
        ]
        self.wide = nn.Sequential(*layers)
        self.gate = None
        if squeeze:
            small = max(1, inner // squeeze)
            self.gate = nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, small, 1), nn.SiLU(), nn.Conv2d(small, hidden, 1), nn.Sigmoid()
            )
        self.narrow = nn.Sequential(nn.Conv2d(hidden, outer, 1, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = self.wide(x)
        if self.gate is not None:
            y = y * self.gate(y)
        y = self.narrow(y)
        return x + y if self.skips else y
"""

MOBILE = """
class Model(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        plan, stem, last = {plan}, {stem}, {last}
        layers = [nn.Conv2d(3, stem, 3, 2, 1, bias=False), nn.BatchNorm2d(stem), nn.ReLU6(inplace=True)]
        inner = stem
        for expand, outer, count, stride, kernel in plan:
            for number in range(count):
                layers.append(Inverted(inner, outer, kernel, stride if number == 0 else 1, expand, {squeeze}))
                inner = outer
        layers += [nn.Conv2d(inner, last, 1, bias=False), nn.BatchNorm2d(last), nn.ReLU6(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(last, num_classes))

    def forward(self, x):
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(self.features(x), (1, 1)), 1))

batch_size = {batch}
num_classes = 1000

def get_inputs():
    return [torch.randn(batch_size, 3, {side}, {side})]

def get_init_inputs():
    return [num_classes]
"""

SHUFFLE = """
class Unit(nn.Module):
    def __init__(self, inner, outer, groups):
        super().__init__()
        middle, self.groups = outer // 4, groups
        self.conv1, self.bn1 = nn.Conv2d(inner, middle, 1, groups=groups, bias=False), nn.BatchNorm2d(middle)
        self.conv2 = nn.Conv2d(middle, middle, 3, padding=1, groups=middle, bias=False)
        self.bn2 = nn.BatchNorm2d(middle)
        self.conv3, self.bn3 = nn.Conv2d(middle, outer, 1, groups=groups, bias=False), nn.BatchNorm2d(outer)
        self.shortcut = nn.Sequential()
        if inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer))

    def shuffle(self, x):
        n, c, h, w = x.shape
        return x.view(n, self.groups, c // self.groups, h, w).transpose(1, 2).contiguous().view(n, c, h, w)

    def forward(self, x):
        y = self.shuffle(F.relu(self.bn1(self.conv1(x))))
        y = self.bn3(self.conv3(self.bn2(self.conv2(y))))
        return F.relu(y) + self.shortcut(x)
"""

ENCODER = """
class Block(nn.Module):
    def __init__(self, dim, heads, ratio=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.heads, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, ratio * dim), nn.GELU(), nn.Linear(ratio * dim, dim))

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))
"""

RECURRENT = """
class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size):
        super().__init__()
        self.rnn = nn.{kind}(input_size, hidden_size, num_layers, batch_first={first}, bidirectional={both})
        self.fc = nn.Linear(hidden_size * (1 + {both}), output_size)

    def forward(self, x, {state}):
        out, state = self.rnn(x, {given})
        return {result}

batch_size = 10
seq_len = 512
input_size = 128
hidden_size = 256
num_layers = {layers}
output_size = 10

def get_inputs():
    return [torch.randn({shape}, input_size), {states}]

def get_init_inputs():
    return [input_size, hidden_size, num_layers, output_size]
"""


def _recur(kind: str, result: str, both: bool = False, first: bool = True, layers: int = 6) -> str:
    state = f"torch.randn(num_layers * {1 + both}, batch_size, hidden_size)"
    lstm = kind == "LSTM"
    return RECURRENT.format(
        kind=kind, result=result, both=both, first=first, layers=layers,
        state="h0, c0" if lstm else "h0", given="(h0, c0)" if lstm else "h0",
        shape="batch_size, seq_len" if first else "seq_len, batch_size", states=", ".join([state] * (1 + lstm)),
    )  # fmt: skip


def _image(body: str, side: int = 224, batch: int = 10, init: str = "num_classes") -> str:
    """A class and its tail: one image and a number of classes."""
    return dedent(body) + dedent(f"""
        batch_size = {batch}
        num_classes = 1000

        def get_inputs():
            return [torch.randn(batch_size, 3, {side}, {side})]

        def get_init_inputs():
            return [{init}]
        """)


def _vgg(plan: str) -> str:
    return _image(f"""
        class Model(nn.Module):
            def __init__(self, num_classes):
                super().__init__()
                layers, inner = [], 3
                for width in {plan}:
                    if width == 0:
                        layers.append(nn.MaxPool2d(2, 2))
                        continue
                    layers += [nn.Conv2d(inner, width, 3, padding=1), nn.ReLU(inplace=True)]
                    inner = width
                self.features = nn.Sequential(*layers)
                self.classifier = nn.Sequential(
                    nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(p=0.0),
                    nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(p=0.0), nn.Linear(4096, num_classes),
                )

            def forward(self, x):
                return self.classifier(torch.flatten(self.features(x), 1))
        """)


def _resnet(block: str, name: str, layers: str, batch: int = 2) -> str:
    return block + f"\nBlock = {name}\n" + RESNET.format(layers=layers, batch=batch)


_EFFICIENT = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip
_MOBILE2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _efficient(depth: float, width: float, side: int, batch: int = 10) -> str:
    plan = [(e, 8 * round(width * c / 8), -int(-depth * n // 1), s, k) for e, c, n, s, k in _EFFICIENT]
    stem, last = 8 * round(width * 32 / 8), int(1280 * width)
    return INVERTED + MOBILE.format(plan=plan, stem=stem, last=last, squeeze=4, batch=batch, side=side)


def _mlp(sizes: str) -> str:
    return f"""
class Model(nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        layers, inner = [], input_size
        for size in layer_sizes:
            layers += [nn.Linear(inner, size), nn.ReLU()]
            inner = size
        layers.append(nn.Linear(inner, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x):
        return self.network(x)

{sizes}

def get_inputs():
    return [torch.randn(batch_size, input_size)]

def get_init_inputs():
    return [input_size, layer_sizes, output_size]
"""


_SEQUENCE = """
batch_size = {batch}
max_seqlen = 1024
seq_len = 512
n_embd = 768
n_head = 8

def get_inputs():
    return [torch.randn(batch_size, seq_len, n_embd)]

def get_init_inputs():
    return [n_embd, n_head, max_seqlen]
"""

CAUSAL = """
class Causal(nn.Module):
    def __init__(self, n_embd, n_head, max_seqlen):
        super().__init__()
        self.attend, self.project = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.drop = nn.Dropout(0.0)
        self.register_buffer("bias", torch.tril(torch.ones(max_seqlen, max_seqlen)).view(1, 1, max_seqlen, max_seqlen))
        self.n_head, self.n_embd = n_head, n_embd

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.attend(x).split(self.n_embd, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.drop(F.softmax(att, dim=-1)) @ v
        return self.project(y.transpose(1, 2).contiguous().view(B, T, C))
"""

WINDOWS = """
def partition(x, size):
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)

def merge(windows, size, h, w):
    b = windows.shape[0] // (h * w // size // size)
    x = windows.view(b, h // size, w // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, -1)
"""

SWIN = """
class Window(nn.Module):
    def __init__(self, dim, side, heads, size, shift):
        super().__init__()
        self.side, self.heads, self.size = side, heads, min(size, side)
        self.shift = shift if side > size else 0
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
{parts}
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

{mix}
    def forward(self, x):
        b, _, c = x.shape
        y = self.norm1(x).view(b, self.side, self.side, c)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = merge(self.mix(partition(y, self.size)), self.size, self.side, self.side)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y.reshape(b, -1, c)
        return x + self.mlp(self.norm2(x))

class Merging(nn.Module):
    def __init__(self, side, dim):
        super().__init__()
        self.side, self.norm, self.reduce = side, nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        b, _, c = x.shape
        x = x.view(b, self.side, self.side, c)
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduce(self.norm(x.reshape(b, -1, 4 * c)))

class Model(nn.Module):
    def __init__(self, image, dim, depths, heads, num_classes):
        super().__init__()
        self.embed, side = nn.Conv2d(3, dim, 4, 4), image // 4
        layers = []
        for stage, depth in enumerate(depths):
            layers += [Window(dim, side, heads[stage], 7, 3 * (n % 2)) for n in range(depth)]
            if stage < len(depths) - 1:
                layers.append(Merging(side, dim))
                side, dim = side // 2, 2 * dim
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def forward(self, x):
        x = self.norm(self.layers(self.embed(x).flatten(2).transpose(1, 2)))
        return self.head(x.mean(1))

batch_size = 10
image = 224

def get_inputs():
    return [torch.randn(batch_size, 3, image, image)]

def get_init_inputs():
    return [image, 96, (2, 2, 6, 2), (3, 6, 12, 24), 1000]
"""

_MLP_PARTS = "        self.spatial = nn.Conv1d(heads * self.size**2, heads * self.size**2, 1, groups=heads)"
_MLP_MIX = """    def mix(self, windows):
        n, t, c = windows.shape
        x = windows.view(n, t, self.heads, c // self.heads).transpose(1, 2).reshape(n, self.heads * t, c // self.heads)
        return self.spatial(x).view(n, self.heads, t, c // self.heads).transpose(1, 2).reshape(n, t, c)
"""
_COSINE_PARTS = """        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones((heads, 1, 1))))
        self.cpb = nn.Sequential(nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, heads, bias=False))
        steps = torch.arange(-(self.size - 1), self.size, dtype=torch.float32)
        table = torch.stack(torch.meshgrid([steps, steps], indexing="ij")).permute(1, 2, 0).contiguous() / (self.size - 1)
        table = torch.sign(table * 8) * torch.log2(torch.abs(table * 8) + 1.0) / math.log2(8)
        self.register_buffer("table", table.view(-1, 2), persistent=False)
        places = torch.stack(torch.meshgrid([torch.arange(self.size)] * 2, indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None, :] + self.size - 1).permute(1, 2, 0)
        self.register_buffer("index", apart[..., 0] * (2 * self.size - 1) + apart[..., 1], persistent=False)"""
_COSINE_MIX = """    def mix(self, windows):
        n, t, c = windows.shape
        q, k, v = self.qkv(windows).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * torch.clamp(self.logit_scale, max=math.log(100.0)).exp()
        bias = self.cpb(self.table)[self.index.view(-1)].view(t, t, -1).permute(2, 0, 1)
        scores = (scores + 16 * torch.sigmoid(bias)[None]).softmax(-1)
        return self.proj((scores @ v).transpose(1, 2).reshape(n, t, c))
"""

VLAD = """
class Model(nn.Module):
    def __init__(self, cluster_size, feature_size, ghost_clusters):
        super().__init__()
        clusters = cluster_size + ghost_clusters
        self.cluster_size, self.feature_size = cluster_size, feature_size
        self.clusters = nn.Parameter(feature_size**-0.5 * torch.randn(feature_size, clusters))
        self.norm = nn.BatchNorm1d(clusters)
        self.centres = nn.Parameter(feature_size**-0.5 * torch.randn(1, feature_size, cluster_size))

    def forward(self, x, mask=None):
        count = x.size(1)
        x = x.view(-1, self.feature_size)
        weights = F.softmax(self.norm(x @ self.clusters), dim=1)[:, : self.cluster_size]
        weights = weights.view(-1, count, self.cluster_size)
        residual = weights.sum(1, keepdim=True) * self.centres
        vlad = (weights.transpose(1, 2) @ x.view(-1, count, self.feature_size)).transpose(1, 2) - residual
        return F.normalize(F.normalize(vlad).reshape(-1, self.cluster_size * self.feature_size))

batch_size = 32
num_features = 100
num_clusters = 32
feature_size = 512

def get_inputs():
    return [torch.randn(batch_size, num_features, feature_size)]

def get_init_inputs():
    return [num_clusters, feature_size, {ghosts}]
"""

MAMBA = """
from einops import rearrange

class Model(nn.Module):
    def __init__(self, batch_size, seq_length, n_heads, d_head, d_state, block_len):
        super().__init__()
        assert seq_length % block_len == 0
        self.block_len = block_len
        self.A = nn.Parameter(torch.randn(batch_size, seq_length, n_heads))
        self.B = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))
        self.C = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))

    def segsum(self, x):
        t = x.size(-1)
        total = torch.cumsum(x, dim=-1)
        mask = torch.tril(torch.ones(t, t, device=x.device, dtype=bool))
        return (total[..., :, None] - total[..., None, :]).masked_fill(~mask, -torch.inf)

    def forward(self, X, start=None):
        X, A, B, C = (rearrange(t, "b (c l) ... -> b c l ...", l=self.block_len) for t in (X, self.A, self.B, self.C))
        A = rearrange(A, "b c l h -> b h c l")
        total = torch.cumsum(A, dim=-1)
        within = torch.exp(self.segsum(A))
        diagonal = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", C, B, within, X)
        decay = torch.exp(total[:, :, :, -1:] - total)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", B, decay, X)
        start = torch.zeros_like(states[:, :1]) if start is None else start
        states = torch.cat([start, states], dim=1)
        across = torch.exp(self.segsum(F.pad(total[:, :, :, -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", across, states)
        {result}

batch_size = 16
seq_length = 128
n_heads = 8
d_head = 64
d_state = 16
block_len = 64

def get_inputs():
    return [torch.randn(batch_size, seq_length, n_heads, d_head)]

def get_init_inputs():
    return [batch_size, seq_length, n_heads, d_head, d_state, block_len]
"""
_MAMBA_Y = """off = torch.einsum("bclhn,bchpn,bhcl->bclhp", C, states[:, :-1], torch.exp(total))
        return rearrange(diagonal + off, "b c l h p -> b (c l) h p")"""

NETWORKS: dict[str, str] = {
    "mlp": _mlp("batch_size = 1\ninput_size = 1000\nlayer_sizes = [400, 800]\noutput_size = 500"),
    "wide_mlp": _mlp("batch_size = 1\ninput_size = 1000\nlayer_sizes = [2000, 2000]\noutput_size = 10"),
    "deep_mlp": _mlp(
        "batch_size = 1\ninput_size = 1000\nlayer_sizes = [50] * 16\noutput_size = 10\ntorch.manual_seed(0)"
    ),
    "lenet": """
class Model(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.view(-1, 400))))))

batch_size = 1
num_classes = 10

def get_inputs():
    return [torch.randn(batch_size, 1, 32, 32)]

def get_init_inputs():
    return [num_classes]
""",
    "alexnet": _image("""
        class Model(nn.Module):
            def __init__(self, num_classes):
                super().__init__()
                self.features = nn.Sequential(
                    nn.Conv2d(3, 96, 11, 4, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
                    nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
                    nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(inplace=True),
                    nn.Conv2d(384, 384, 3, padding=1), nn.ReLU(inplace=True),
                    nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
                )
                self.head = nn.Sequential(
                    nn.Linear(256 * 6 * 6, 4096), nn.ReLU(), nn.Dropout(p=0.0),
                    nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, num_classes),
                )

            def forward(self, x):
                return self.head(torch.flatten(self.features(x), 1))
        """),
    "inception": INCEPTION.replace("class Inception", "class Model")
    + """
in_channels = 480
height = 224
width = 224
batch_size = 10

def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, 192, 96, 208, 16, 48, 64]
""",
    "googlenet": INCEPTION
    + _image("""
        class Model(nn.Module):
            def __init__(self, num_classes):
                super().__init__()
                self.conv1, self.conv2 = nn.Conv2d(3, 64, 7, 2, 3), nn.Conv2d(64, 64, 1)
                self.conv3, self.pool = nn.Conv2d(64, 192, 3, padding=1), nn.MaxPool2d(3, 2, 1)
                self.a3, self.b3 = Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64)
                self.a4, self.b4 = Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64)
                self.c4, self.d4 = Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64)
                self.e4 = Inception(528, 256, 160, 320, 32, 128, 128)
                self.a5 = Inception(832, 256, 160, 320, 32, 128, 128)
                self.b5 = Inception(832, 384, 192, 384, 48, 128, 128)
                self.drop, self.fc = nn.Dropout(0.0), nn.Linear(1024, num_classes)

            def forward(self, x):
                x = self.pool(F.relu(self.conv3(F.relu(self.conv2(self.pool(F.relu(self.conv1(x))))))))
                x = self.pool(self.b3(self.a3(x)))
                x = self.pool(self.e4(self.d4(self.c4(self.b4(self.a4(x))))))
                x = F.adaptive_avg_pool2d(self.b5(self.a5(x)), 1)
                return self.fc(self.drop(torch.flatten(x, 1)))
        """),
    "resnet_block": BASIC_BLOCK.replace("class BasicBlock", "class Model")
    + """
in_channels = 3
out_channels = 64
stride = 1
batch_size = 10

def get_inputs():
    return [torch.randn(batch_size, in_channels, 224, 224)]

def get_init_inputs():
    return [in_channels, out_channels, stride]
""",
    "resnet18": _resnet(BASIC_BLOCK, "BasicBlock", "[2, 2, 2, 2]"),
    "resnet101": _resnet(BOTTLENECK, "Bottleneck", "[3, 4, 23, 3]", 10),
    "vgg16": _vgg("(64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)"),
    "vgg19": _vgg("(64, 64, 0, 128, 128, 0, *[256] * 4, 0, *[512] * 4, 0, *[512] * 4, 0)"),
    "dense_transition": TRANSITION.replace("class Transition", "class Model")
    + """
batch_size = 128
num_input_features = 32
num_output_features = 64
height, width = 256, 256

def get_inputs():
    return [torch.randn(batch_size, num_input_features, height, width)]

def get_init_inputs():
    return [num_input_features, num_output_features]
""",
    "dense_block": DENSE_BLOCK.replace("class DenseBlock", "class Model")
    + """
batch_size = 10
num_layers = 6
num_input_features = 32
growth_rate = 32
height, width = 224, 224

def get_inputs():
    return [torch.randn(batch_size, num_input_features, height, width)]

def get_init_inputs():
    return [num_layers, num_input_features, growth_rate]
""",
    "densenet121": DENSE_BLOCK + TRANSITION + DENSENET.format(counts="[6, 12, 24, 16]", classes=10),
    "densenet201": DENSE_BLOCK + TRANSITION + DENSENET.format(counts="[6, 12, 48, 32]", classes=10),
    "fire": FIRE.replace("class Fire", "class Model")
    + """
batch_size = 128
num_input_features = 3
squeeze_channels = 6
expand_channels = 64

def get_inputs():
    return [torch.randn(batch_size, num_input_features, 256, 256)]

def get_init_inputs():
    return [num_input_features, squeeze_channels, expand_channels]
""",
    "squeezenet": FIRE
    + _image(
        """
        class Model(nn.Module):
            def __init__(self, num_classes):
                super().__init__()
                self.features = nn.Sequential(
                    nn.Conv2d(3, 96, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, ceil_mode=True),
                    Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True),
                    Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256),
                    nn.MaxPool2d(3, 2, ceil_mode=True), Fire(512, 64, 256),
                )
                self.classifier = nn.Sequential(
                    nn.Dropout(p=0.0), nn.Conv2d(512, num_classes, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)
                )

            def forward(self, x):
                return torch.flatten(self.classifier(self.features(x)), 1)
        """,
        512,
        64,
    ),
    "mobilenet_v1": _image("""
        class Model(nn.Module):
            def __init__(self, num_classes, alpha=1.0):
                super().__init__()

                def separable(inner, outer, stride):
                    return nn.Sequential(
                        nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
                        nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
                    )

                plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
                layers = [nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU())]
                inner = 32
                for outer, stride in plan:
                    layers.append(separable(int(inner * alpha), int(outer * alpha), stride))
                    inner = outer
                self.model = nn.Sequential(*layers, nn.AvgPool2d(7))
                self.fc = nn.Linear(int(1024 * alpha), num_classes)

            def forward(self, x):
                x = self.model(x)
                return self.fc(x.view(x.size(0), -1))
        """),
    "mobilenet_v2": INVERTED
    + MOBILE.format(plan=[(*row, 3) for row in _MOBILE2], stem=32, last=1280, squeeze=0, batch=10, side=224),
    "mbconv": INVERTED.replace("class Inverted", "class Model")
    + """
batch_size = 10
in_channels, out_channels = 112, 192
kernel_size = 5
stride = 2
expand_ratio = 6

def get_inputs():
    return [torch.randn(batch_size, in_channels, 224, 224)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, expand_ratio]
""",
    "efficientnet_b0": _efficient(1.0, 1.0, 224),
    "efficientnet_b1": _efficient(1.1, 1.0, 240),
    "efficientnet_b2": _efficient(1.2, 1.1, 224, 2),
    "shuffle_unit": SHUFFLE.replace("class Unit", "class Model")
    + """
batch_size = 10
input_channels = 240
out_channels = 480
groups = 3
height = 224
width = 224

def get_inputs():
    return [torch.randn(batch_size, input_channels, height, width)]

def get_init_inputs():
    return [input_channels, out_channels, groups]
""",
    "shufflenet": SHUFFLE
    + _image("""
        class Model(nn.Module):
            def __init__(self, num_classes):
                super().__init__()
                self.stem = nn.Sequential(
                    nn.Conv2d(3, 24, 3, 2, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
                )
                layers, inner = [], 24
                for outer, count in ((240, 4), (480, 8), (960, 4)):
                    layers.append(Unit(inner, outer, 3))
                    layers += [Unit(outer, outer, 3) for _ in range(count - 1)]
                    inner = outer
                self.stages = nn.Sequential(*layers)
                self.last, self.fc = nn.Conv2d(960, 1024, 1, bias=False), nn.Linear(1024, num_classes)

            def forward(self, x):
                x = F.relu(self.last(self.stages(self.stem(x))))
                return self.fc(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))
        """),
    "regnet": """
class Model(nn.Module):
    def __init__(self, input_channels, stages, block_widths, output_classes):
        super().__init__()
        layers, inner = [], input_channels
        for number in range(stages):
            width = block_widths[number]
            layers.append(nn.Sequential(
                nn.Conv2d(inner, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2, 2),
            ))
            inner = width
        self.extractor, self.fc = nn.Sequential(*layers), nn.Linear(block_widths[-1], output_classes)

    def forward(self, x):
        return self.fc(torch.mean(self.extractor(x), dim=[2, 3]))

batch_size = 8
input_channels = 3
image_height, image_width = 224, 224
stages = 3
block_widths = [64, 128, 256]
output_classes = 10

def get_inputs():
    return [torch.randn(batch_size, input_channels, image_height, image_width)]

def get_init_inputs():
    return [input_channels, stages, block_widths, output_classes]
""",
    "vit": ENCODER
    + """
class Model(nn.Module):
    def __init__(self, image_size, patch_size, num_classes, dim, depth, heads):
        super().__init__()
        self.patch_size, count = patch_size, (image_size // patch_size) ** 2
        self.position = nn.Parameter(torch.randn(1, count + 1, dim))
        self.embed, self.token = nn.Linear(3 * patch_size**2, dim), nn.Parameter(torch.randn(1, 1, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        p = self.patch_size
        x = img.unfold(2, p, p).unfold(3, p, p).reshape(img.shape[0], -1, p * p * img.shape[1])
        x = torch.cat((self.token.expand(img.shape[0], -1, -1), self.embed(x)), dim=1) + self.position
        return self.head(self.blocks(x)[:, 0])

batch_size = 2
image_size = 224

def get_inputs():
    return [torch.randn(batch_size, 3, image_size, image_size)]

def get_init_inputs():
    return [image_size, 16, 10, 512, 6, 8]
""",
    "swin_mlp": WINDOWS + SWIN.format(parts=_MLP_PARTS, mix=_MLP_MIX),
    "swin_v2": WINDOWS + SWIN.format(parts=_COSINE_PARTS, mix=_COSINE_MIX),
    "vision_attention": """
class Model(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn, self.norm = nn.MultiheadAttention(embed_dim, num_heads), nn.LayerNorm(embed_dim)

    def forward(self, x):
        B, C, H, W = x.shape
        x = x.view(B, C, H * W).permute(2, 0, 1)
        y, _ = self.attn(x, x, x)
        return self.norm(y + x).permute(1, 2, 0).view(B, C, H, W)

embed_dim = 128
num_heads = 4
batch_size = 2
image_height = 128
image_width = 128

def get_inputs():
    return [torch.randn(batch_size, embed_dim, image_height, image_width)]

def get_init_inputs():
    return [embed_dim, num_heads]
""",
    "conv_vit": """
class Model(nn.Module):
    def __init__(self, num_classes, embed_dim, num_heads, num_layers, patch_size, in_channels, image_size):
        super().__init__()
        self.patch = nn.Conv2d(in_channels, embed_dim, patch_size, patch_size)
        self.linear = nn.Linear(embed_dim * (image_size // patch_size) ** 2, embed_dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(embed_dim, num_heads, int(embed_dim * 4.0), dropout=0.0)
            for _ in range(num_layers)
        )
        self.token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.head = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        x = self.linear(self.patch(x).flatten(1)).unsqueeze(1)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])

batch_size = 10
image_size = 32
embed_dim = 128
in_channels = 3
num_heads = 4
num_classes = 1000

def get_inputs():
    return [torch.randn(batch_size, in_channels, image_size, image_size)]

def get_init_inputs():
    return [num_classes, embed_dim, num_heads, 6, 4, in_channels, image_size]
""",
    "rnn_cell": """
class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.i2h, self.h2o = nn.Linear(input_size + hidden_size, hidden_size), nn.Linear(hidden_size, output_size)
        self.hidden = torch.randn((batch_size, hidden_size))

    def forward(self, x, initial_hidden=None):
        if initial_hidden is not None:
            self.hidden.copy_(initial_hidden)
        self.hidden = self.hidden.to(x.device)
        self.hidden = torch.tanh(self.i2h(torch.cat((x, self.hidden), dim=1)))
        return self.h2o(self.hidden)

batch_size = 256
input_size = 16384
hidden_size = 16384
output_size = 8192

def get_inputs():
    return [torch.randn(batch_size, input_size), torch.randn(batch_size, hidden_size)]

def get_init_inputs():
    return [input_size, hidden_size, output_size]
""",
    "rnn_hidden": """
class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.i2h, self.h2o = nn.Linear(input_size + hidden_size, hidden_size), nn.Linear(hidden_size, output_size)

    def forward(self, x, h0):
        outputs = []
        for t in range(x.size(0)):
            h0 = torch.tanh(self.i2h(torch.cat((x[t], h0), dim=1)))
            outputs.append(self.h2o(h0))
        return torch.stack(outputs, dim=0)

batch_size = 8
input_size = 1024
hidden_size = 256
output_size = 128
sequence_length = 256

def get_inputs():
    return [torch.randn(sequence_length, batch_size, input_size), torch.randn(batch_size, hidden_size)]

def get_init_inputs():
    return [input_size, hidden_size, output_size]
""",
    "lstm": _recur("LSTM", "self.fc(out[:, -1, :])"),
    "lstm_hidden": _recur("LSTM", "state[0]"),
    "lstm_cell": _recur("LSTM", "state[1]"),
    "lstm_both": _recur("LSTM", "self.fc(out[:, -1, :])", both=True),
    "gru": _recur("GRU", "out", first=False),
    "gru_hidden": _recur("GRU", "state", first=False),
    "gru_both": _recur("GRU", "out", both=True, first=False),
    "gru_both_hidden": _recur("GRU", "state", both=True, first=False),
    "causal_attention": CAUSAL.replace("class Causal", "class Model") + _SEQUENCE.format(batch=128),
    "gpt_block": CAUSAL
    + """
class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

class Model(nn.Module):
    def __init__(self, n_embd, n_head, max_seqlen):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attend = Causal(n_embd, n_head, max_seqlen)
        self.mlp = nn.ModuleDict(dict(
            up=nn.Linear(n_embd, 4 * n_embd), down=nn.Linear(4 * n_embd, n_embd), act=Gelu(), drop=nn.Dropout(0.0)
        ))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp.drop(self.mlp.down(self.mlp.act(self.mlp.up(self.norm2(x)))))
"""
    + _SEQUENCE.format(batch=128),
    "unet": """
class Double(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.Softmax(dim=-1),
            nn.Conv2d(outer, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.Softmax(dim=-1),
        )

    def forward(self, x):
        return self.net(x)

class Model(nn.Module):
    def __init__(self, in_channels, out_channels, features):
        super().__init__()
        widths = [features * 2**n for n in range(5)]
        self.down = nn.ModuleList(Double(a, b) for a, b in zip([in_channels, *widths[:-2]], widths[:-1]))
        self.bottom = Double(widths[-2], widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(Double(2 * w, w) for w in reversed(widths[:-1]))
        self.last = nn.Conv2d(features, out_channels, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2, 2)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], dim=1))
        return self.last(x)

batch_size = 8
in_channels = 8
out_channels = 4
height = 64
width = 512
features = 64

def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, features]
""",
    "netvlad_ghosts": VLAD.format(ghosts=16),
    "netvlad": VLAD.format(ghosts=0),
    "mamba_y": MAMBA.format(result=_MAMBA_Y),
    "mamba_state": MAMBA.format(result="return states[:, -1]"),
    "relu_attention": """
class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

class Model(nn.Module):
    def __init__(self, n_embd, n_head, max_seqlen):
        super().__init__()
        self.attend, self.project = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.register_buffer("bias", torch.tril(torch.ones(max_seqlen, max_seqlen)).view(1, 1, max_seqlen, max_seqlen))
        self.n_head, self.n_embd = n_head, n_embd

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.attend(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return (F.relu(att) @ v).transpose(1, 2).contiguous().view(B, T, C)
"""
    + _SEQUENCE.format(batch=16),
}


def write_network(name: str) -> str:
    return HEAD + NETWORKS[name].lstrip("\n")
