"""The downstream messages of compression/FORMAT.md, "0x81 to 0x85, 0x89 and 0x8a" and "0x86 to 0x88", in Python, written from
that text alone.

`samples` has one number an update, or none for the plain average; `total` is not 0 where they are shares of more than their sum. `trust`
is 0 for the average. Decoded updates are lists of floats. An element of a decoded update that was not sent is 0, and one that was sent
is not, unless `trust` is 0.

  forward(updates, samples, total=0, trust=0) -> bytes
  step_of(decoded, samples, total, trust) -> the step
  dense(values) -> bytes
  step(values) -> bytes: the shorter one of the dense and the sparse step
  coded(message) -> bytes, of a message of the downstream codec
  whole_model(values), coded_model(message), centered_model(message) -> bytes; the snapshot is centered_model(b'')
  centered(snapshot, decoded) -> the model, of lists of floats
  bundle(updates, cohorts) -> bytes, of "0x1c: bundles"; a cohort is (clients, samples)
  read_forward(message) -> (updates, samples, total, trust); ValueError for what no coordinator sends
"""
import struct

from common import bits_of, f32, field, pack
from position_coders import rice


def varint(value):
    out = b''
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def forward(updates, samples, total=0, trust=0):
    out = b'\x8a' + struct.pack('<f', trust) if trust else b''
    out += bytes([0x85 if total else 0x83 if samples else 0x81]) + varint(len(updates))
    out += varint(total) if total else b''
    for i, update in enumerate(updates):
        out += (varint(samples[i]) if samples else b'') + varint(len(update)) + update
    return out


def bundle(updates, cohorts):
    out = b'\x1c' + varint(len(updates))
    for update, (clients, samples) in zip(updates, cohorts):
        out += varint(clients) + varint(samples) + varint(len(update)) + update
    return out


def step_of(decoded, samples, total, trust):
    weights = [f32(float(n) / float(total or sum(samples))) for n in samples]
    step = [0.0] * len(decoded[0])
    senders = list(step)
    for i, update in enumerate(decoded):
        weight = weights[i] if weights else 1.0
        step = [f32(a + f32(weight * x)) for a, x in zip(step, update)]
        senders = [f32(a + weight) if x != 0 else a for a, x in zip(senders, update)]
    if not weights:
        step = [f32(a * f32(1 / len(decoded))) for a in step]
    if not trust:
        return step
    everyone = sum(weights) if weights else float(len(decoded))
    return [f32(a * min(4.0, 1 + trust * (everyone - m) / m)) if m > 0 else a for a, m in zip(step, senders)]


def dense(values):
    return b'\x82' + b''.join(struct.pack('<f', x) for x in values)


def code_lengths(weights):
    """Of the code words of symbols that occur so often, in the symbols' order."""
    if len(weights) == 1:
        return [0]
    while True:
        # A root: its weight, whether it was joined, its place among its kind, and the depths of its symbols.
        roots = [(weight, 0, i, {i: 0}) for i, weight in enumerate(weights)]
        joined = 0
        while len(roots) > 1:
            roots.sort(key=lambda root: root[:3])
            (first, _, _, left), (second, _, _, right) = roots[:2]
            depths = {symbol: depth + 1 for symbol, depth in {**left, **right}.items()}
            roots = roots[2:] + [(first + second, 1, joined, depths)]
            joined += 1
        depths = [roots[0][3][i] for i in range(len(weights))]
        if max(depths) <= 15:
            return depths
        weights = [(weight + 1) // 2 for weight in weights]


def code_words(lengths):
    """Lists of bits, the first one first."""
    words, word, before = {}, 0, 0
    for length, i in sorted((length, i) for i, length in enumerate(lengths)):
        word <<= length - before
        words[i] = [word >> bit & 1 for bit in reversed(range(length))]
        word, before = word + 1, length
    return [words[i] for i in range(len(lengths))]


def sparse_values(listed, s):
    """The bits of the symbols and lengths, and a function from a value's bits to those of the value."""
    symbols = sorted({value >> s for value in listed})
    weights = [sum(value >> s == symbol for value in listed) for symbol in symbols]
    lengths = code_lengths(weights) if symbols else []
    head = field(int(s == 0), 1) + field(len(symbols), 15)
    for symbol in symbols:
        head += field(symbol, 32 - s)
    for length in lengths if len(symbols) > 1 else []:
        head += field(length, 4)
    words = dict(zip(symbols, code_words(lengths)))
    size = len(head) + sum(len(words[value >> s]) + s for value in listed)
    return size, head, lambda value: words[value >> s] + field(value & (2**s - 1), s)


def sparse(values):
    every = [bits_of(value) for value in values]
    listed = [bits for bits in every if bits]
    octaves, whole = sparse_values(listed, 23), sparse_values(listed, 0)
    fewest = whole if len(set(listed)) <= 16384 and whole[0] < octaves[0] else octaves
    _, bits, of_value = fewest
    for begin in range(0, len(every), 65536):
        block = every[begin:begin + 65536]
        count = sum(value != 0 for value in block)
        positions = [i for i, value in enumerate(block) if (value != 0) == (2 * count <= len(block))]
        bits = bits + field(count, 17) + (rice(positions, len(block)) if positions else [])
        for value in block:
            bits += of_value(value) if value else []
    return pack(0x89, bits)


def step(values):
    forms = b'\x82' + b''.join(struct.pack('<f', x) for x in values), sparse(values)
    return forms[len(forms[1]) < len(forms[0])]


def coded(message):
    return b'\x84' + message


def whole_model(values):
    return b'\x86' + b''.join(struct.pack('<f', x) for x in values)


def coded_model(message):
    return b'\x87' + message


def centered_model(message):
    return b'\x88' + message


def centered(snapshot, decoded):
    return [f32(x + y) for x, y in zip(snapshot, decoded)]


def read_varint(message, at):
    value, shift = 0, 0
    while True:
        if at >= len(message) or shift == 63:
            raise ValueError('a bad number')
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 0x80:
            if shift > 7 and message[at - 1] == 0:
                raise ValueError('not the shortest form')
            return value, at


def read_forward(message):
    trust = 0
    if message[:1] == b'\x8a':
        trust, message = struct.unpack('<f', message[1:5])[0], message[5:]
        if not 0 < trust <= 1:
            raise ValueError('a bad trust')
    if not message or message[0] not in (0x81, 0x83, 0x85):
        raise ValueError('another format')
    count, at = read_varint(message, 1)
    total, at = read_varint(message, at) if message[0] == 0x85 else (0, at)
    updates, samples = [], []
    for _ in range(count):
        if message[0] != 0x81:
            number, at = read_varint(message, at)
            samples.append(number)
        size, at = read_varint(message, at)
        if not 0 < size <= len(message) - at:
            raise ValueError('a bad length')
        updates.append(message[at:at + size])
        at += size
    if not count or at != len(message) or 0 in samples or sum(samples) >= 2**63:
        raise ValueError('bad counts')
    if message[0] == 0x85 and not sum(samples) < total < 2**63:
        raise ValueError('a bad total')
    return updates, samples, total, trust
