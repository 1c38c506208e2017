"""The messages of compression/FORMAT.md, "Sparse messages", in Python, written from that text alone.

`spec` is a dict of the run's codec settings (CodecSpec), `tensors` a list of lists of numbers that float32 can hold,
`key` = (run, round, client), `latest` the newest part of the tensors, `shapes` a list of shapes where they matter (adacomp).

  encode(spec, tensors, key, latest=None, shapes=None) -> bytes
  decode(spec, sizes, message) -> list of lists of floats; ValueError for what no encoder writes
"""
import math
from fractions import Fraction

import philox
import position_coders
import position_decoders
from common import (INFINITY_BITS, Stream, bf16, bits_of, f32, field, float_of, lane_sum, nearest, pack, positive,
                    unary)

NUMBERS = {'sbc': 0x04, 'stc': 0x05, 'sbc_or_stc': 0x06, 'top_k': 0x07, 'dgc': 0x08, 'strom': 0x09, 'adacomp': 0x0A,
           'random_sparse': 0x0B, 'mcgq': 0x0C, 'sparseloco': 0x0D, 'low_precision_sparse': 0x17}
PLANNED = ('sbc', 'stc', 'sbc_or_stc', 'top_k', 'sparseloco')
DEFAULTS = {'density': 0.01, 'counts': 'proportional', 'mean_precision': 'fp32', 'positions': 'auto', 'code': 'simple',
            'threshold': 0.01, 'samples': 0.05, 'bits': 4, 'bucket': 0}


def planned(p, n):
    return min(n, max(1, (Fraction(p * n) + Fraction(1, 2)).__floor__()))


def planned_counts(spec, sizes):
    """FORMAT.md, "Planned counts"."""
    if spec['name'] == 'sparseloco':
        return [sum(planned(spec['density'], len(chunk)) for chunk in chunks_of(spec, range(n))) for n in sizes]
    if spec['counts'] == 'equal':
        return [min(n, planned(spec['density'], max(sizes))) for n in sizes]
    return [planned(spec['density'], n) for n in sizes]


def chunks_of(spec, elements):
    step = spec['bucket'] or len(elements)
    return [elements[begin:begin + step] for begin in range(0, len(elements), step)]


class Part:
    """What one tensor sends: payload has one entry a position, a list of bits; scale is None where none travels; table has the
    bits behind all payloads."""

    def __init__(self, positions=(), payload=None, scale=None, selector=(), table=()):
        self.table = list(table)
        self.positions = list(positions)
        self.payload = payload if payload is not None else [[] for _ in self.positions]
        self.scale = scale
        self.selector = list(selector)


def largest(tensor, k, wanted=lambda x: x != 0):
    order = sorted((-abs(x), i) for i, x in enumerate(tensor) if wanted(x))
    return sorted(i for _, i in order[:k])


def scale_of(spec, x):
    return bf16(positive(x)) if spec['mean_precision'] == 'bf16' else positive(x)


def magnitude_sum(tensor, positions):
    """Entry j to partial sum j mod 8, then the partial sums to zero in order."""
    partial = [0.0] * 8
    for j, i in enumerate(positions):
        partial[j % 8] += abs(tensor[i])
    total = 0.0
    for x in partial:
        total += x
    return total


def sign_bits(tensor, positions):
    return [[int(tensor[i] < 0)] for i in positions]


def one_sided(spec, tensor, k):
    sides = []
    for sign in (1, -1):
        positions = largest(tensor, k, lambda x: sign * x > 0)
        sides.append((magnitude_sum(tensor, positions), sign, positions))
    total, sign, positions = sides[0] if sides[0][0] >= sides[1][0] else sides[1]
    return Part(positions, None, sign * scale_of(spec, total / len(positions)) if positions else None)


def two_sided(spec, tensor, k):
    positions = largest(tensor, k)
    if not positions:
        return Part()
    return Part(positions, sign_bits(tensor, positions),
                scale_of(spec, magnitude_sum(tensor, positions) / len(positions)))


def energy_per_bit(spec, part, size):
    if not part.positions:
        return 0.0
    energy = float(len(part.positions)) * abs(part.scale) * abs(part.scale)
    bits = 16 if spec['mean_precision'] == 'bf16' else 32
    bits += sum(map(len, part.payload)) + len(position_coders.CODERS[spec['positions']](part.positions, size))
    return energy / float(bits)


def either(spec, tensor, k):
    one, two = one_sided(spec, tensor, k), two_sided(spec, tensor, k)
    one.selector, two.selector = [0], [1]
    return two if energy_per_bit(spec, two, len(tensor)) > energy_per_bit(spec, one, len(tensor)) else one


def floats(tensor, k):
    positions = largest(tensor, k)
    return Part(positions, [field(bits_of(tensor[i]), 32) for i in positions])


def levels_of(values, bits):
    """The level of each value: FORMAT.md, "What the encoders choose", sparseloco."""
    count = 2**bits
    mean = lane_sum(values) / len(values)
    width = 0.0
    if len(values) > 1:
        width = 6.0 * math.sqrt(lane_sum((x - mean) * (x - mean) for x in values) / float(len(values) - 1)) / float(count)
    places = [(x - mean) / width if width else 0.0 for x in values]
    return [min(count - 1, max(0, math.floor(place + float(count // 2) + 0.5))) for place in places]


def mean_of(values):
    total = 0.0
    for x in values:
        total += x
    mean = total / float(len(values))
    return math.copysign(nearest(abs(mean)), mean) + 0.0


def sparseloco(spec, tensor):
    positions = []
    for chunk in chunks_of(spec, range(len(tensor))):
        own = [tensor[i] for i in chunk]
        positions += [chunk[0] + i for i in largest(own, planned(spec['density'], len(own)))]
    values = [tensor[i] for i in positions]
    if not values:
        return Part()
    levels = levels_of(values, spec['bits'])
    means = [mean_of([x for x, own in zip(values, levels) if own == level]) for level in sorted(set(levels))]
    return Part(positions, [field(level, spec['bits']) for level in levels],
                table=sum((field(bits_of(mean), 32) for mean in means), []))


def strom(spec, tensor):
    tau = f32(spec['threshold'])
    positions = [i for i, x in enumerate(tensor) if abs(x) >= tau]
    return Part(positions, sign_bits(tensor, positions))


def adacomp(tensor, latest, shape):
    size = 50 if len(shape) == 4 else 500
    maxima, positions = [], []
    for begin in range(0, len(tensor), size):
        bin_range = range(begin, min(begin + size, len(tensor)))
        maxima.append(max(abs(tensor[i]) for i in bin_range))
        positions += [i for i in bin_range if tensor[i] != 0 and abs(f32(tensor[i] + latest[i])) >= maxima[-1]]
    total = 0.0
    for x in maxima:
        total += x
    return Part(positions, sign_bits(tensor, positions), positive(total / len(maxima)) if positions else None)


def low_precision_sparse(spec, tensor, key, index):
    top = max(map(abs, tensor))
    if top == 0:
        return Part()
    budget = spec['density'] * len(tensor)
    scale = positive(max(top, lane_sum(map(abs, tensor)) / budget))
    words = philox.draws(key, index, len(tensor))
    positions = [i for i, x in enumerate(tensor) if words[i] * 2.0**-32 * scale < abs(x)]
    return Part(positions, sign_bits(tensor, positions), scale if positions else None)


def prefix_sums(tensor):
    """C_k of FORMAT.md, "mcgq", by octets; that of an element that is 0 does not matter."""
    sums, begin = [], 0.0
    for first in range(0, len(tensor), 8):
        a = [abs(x) for x in tensor[first:first + 8]]
        a += [0.0] * (8 - len(a))
        end = begin + (((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])))
        last = max((i for i in range(8) if a[i]), default=0)
        reached = begin
        for i in range(min(8, len(tensor) - first)):
            reached = end if i >= last else min(end, reached + a[i])
            sums.append(reached)
        begin = end
    return sums


def mcgq_levels(samples, tensor, key, index):
    """The integers, with their signs, and the scale."""
    if not any(tensor):
        return [0] * len(tensor), 0.0
    n = min(2**31 - 1, math.ceil(samples * len(tensor)))
    xi = philox.draws(key, index, 1)[0] * 2.0**-32
    sums = prefix_sums(tensor)
    norm = sums[-1]
    levels, before = [], 0
    for x, total in zip(tensor, sums):
        if x == 0:
            levels.append(0)
            continue
        until = n if total == norm else min(n, math.ceil(float(n) * total / norm - xi))
        levels.append((until - before) * (-1 if x < 0 else 1))
        before = until
    return levels, positive(norm / n)


def mcgq_part(levels, scale):
    positions = [i for i, level in enumerate(levels) if level]
    payload = []
    for i in positions:
        width = abs(levels[i]).bit_length() - 1
        payload.append(unary(width) + field(abs(levels[i]) - 2**width, width) + [int(levels[i] < 0)])
    return Part(positions, payload, scale if positions else None)


def runs_of(levels):
    """Tokens: a level, or ('run', zeros)."""
    tokens = []
    for level in levels:
        if level:
            tokens.append(level)
        elif tokens and isinstance(tokens[-1], tuple):
            tokens[-1] = ('run', tokens[-1][1] + 1)
        else:
            tokens.append(('run', 1))
    return tokens


def rle_bits(levels):
    tokens = runs_of(levels)
    level_bits = 1 + max(map(abs, levels)).bit_length()
    run_bits = max([token[1] for token in tokens if isinstance(token, tuple)], default=0).bit_length()
    bits = field(level_bits, 32) + field(run_bits, 32)
    for token in tokens:
        if isinstance(token, tuple):
            bits += field(0, level_bits) + field(token[1], run_bits)
        else:
            bits += field(token % 2**level_bits, level_bits)
    return bits


def random_seed(key):
    low, high = philox.draws(key, 0, 2)
    return low | high << 32


def choose(seed, tensor, k, n):
    words = iter(())
    drawn = 0

    def below(limit):
        nonlocal words, drawn
        while True:
            word = next(words, None)
            if word is None:
                drawn = max(16, 2 * drawn)
                words = iter(philox.draws((seed, 0, 0), tensor, drawn)[drawn // 2 if drawn > 16 else 0:])
                continue
            if word * limit % 2**32 >= 2**32 % limit:
                return word * limit >> 32

    chosen = set()
    for last in range(n - k, n):
        candidate = below(last + 1)
        chosen.add(last if candidate in chosen else candidate)
    return sorted(chosen)


def encode_random(spec, tensors, key):
    seed = random_seed(key)
    bits = field(seed, 64)
    counts = planned_counts(spec, [len(tensor) for tensor in tensors])
    for t, (tensor, k) in enumerate(zip(tensors, counts)):
        for i in choose(seed, t, k, len(tensor)):
            x = tensor[i]
            if spec['code'] == 'unbiased':
                x = math.copysign(nearest(abs(x * float(len(tensor)) / float(k))), x)
            bits += field(bits_of(x), 32)
    return pack(NUMBERS['random_sparse'], bits)


def part_of(spec, tensor, t, k, key, latest, shape):
    """`k` is the planned count, and not used by dgc and those that plan none."""
    name = spec['name']
    if name == 'dgc':
        k = planned(spec.get('rates', {}).get(t, spec['density']), len(tensor))
    if name == 'mcgq':
        samples = spec.get('rates', {}).get(t, spec['samples'])
        return mcgq_part(*mcgq_levels(samples, tensor, key, t))
    return {'sbc': lambda: one_sided(spec, tensor, k), 'stc': lambda: two_sided(spec, tensor, k),
            'sbc_or_stc': lambda: either(spec, tensor, k), 'top_k': lambda: floats(tensor, k),
            'dgc': lambda: floats(tensor, k), 'sparseloco': lambda: sparseloco(spec, tensor), 'strom': lambda: strom(spec, tensor),
            'adacomp': lambda: adacomp(tensor, latest, shape),
            'low_precision_sparse': lambda: low_precision_sparse(spec, tensor, key, t)}[name]()


def encode_rle(spec, tensors, key):
    bits = []
    for t, tensor in enumerate(tensors):
        levels, scale = mcgq_levels(spec.get('rates', {}).get(t, spec['samples']), tensor, key, t)
        bits += field(bits_of(scale), 32) + rle_bits(levels)
    return pack(NUMBERS['mcgq'], bits)


def encode(spec, tensors, key, latest=None, shapes=None):
    spec = {**DEFAULTS, **spec}
    if spec['name'] == 'random_sparse':
        return encode_random(spec, tensors, key)
    if spec['name'] == 'mcgq' and spec['code'] == 'simple':
        return encode_rle(spec, tensors, key)
    latest = latest if latest is not None else tensors
    shapes = shapes if shapes is not None else [[len(tensor)] for tensor in tensors]
    counts = planned_counts(spec, [len(tensor) for tensor in tensors])
    parts = [part_of(spec, tensor, t, counts[t], key, latest[t], shapes[t]) for t, tensor in enumerate(tensors)]
    plans = counts if spec['name'] in PLANNED else None
    return pack(NUMBERS[spec['name']], message_bits(spec, tensors, parts, plans))


def message_bits(spec, tensors, parts, plans, code_positions=None):
    code_positions = code_positions or (
        lambda t, positions: position_coders.CODERS[spec['positions']](positions, len(tensors[t])))
    all_planned = plans == [len(part.positions) for part in parts]
    bits = [int(all_planned)] if plans is not None else []
    for t, part in enumerate(parts):
        k, n = len(part.positions), len(tensors[t])
        if plans is None:
            bits += field(k, n.bit_length())
        elif not all_planned:
            bits += [1] if k == plans[t] else [0] + field(k, (plans[t] - 1).bit_length())
        if k == 0:
            continue
        bits += part.selector
        if part.scale is not None:
            scale = bits_of(part.scale)
            half = spec['mean_precision'] == 'bf16' and spec['name'] in PLANNED
            bits += field(scale >> 16, 16) if half else field(scale, 32)
        bits += sum(part.payload, []) + part.table + code_positions(t, part.positions)
    return bits


def read_scale(stream, width, signed):
    scale = float_of(stream.get(width) << 32 - width)
    if not 0 < abs(scale) < math.inf or (signed and scale < 0):
        raise ValueError('a bad scale')
    return scale


def read_level(stream):
    width = stream.unary()
    if width > 30:
        raise ValueError('a level too large')
    magnitude = 2**width + stream.get(width)
    return -magnitude if stream.get(1) else magnitude


def read_float(stream, zero_too=False):
    bits = stream.get(32)
    if bits & 0x7FFFFFFF >= INFINITY_BITS or (bits & 0x7FFFFFFF == 0 and not zero_too):
        raise ValueError('a bad value')
    return float_of(bits)


def level_value(level, scale):
    return math.copysign(nearest(abs(level) * scale), level)


def read_table(spec, stream, k):
    levels = [stream.get(spec['bits']) for _ in range(k)]
    values = {level: read_float(stream, True) for level in sorted(set(levels))}
    ordered = list(values.values())
    if any(a >= b for a, b in zip(ordered, ordered[1:])) or bits_of(-0.0) in map(bits_of, ordered):
        raise ValueError('a bad table')
    return [values[level] for level in levels]


def read_values(spec, stream, k):
    name = spec['name']
    if name == 'sparseloco':
        return read_table(spec, stream, k)
    signed = stream.get(1) if name == 'sbc_or_stc' else name != 'sbc'
    if name in ('top_k', 'dgc'):
        return [read_float(stream) for _ in range(k)]
    if name == 'strom':
        scale = f32(spec['threshold'])
    else:
        half = spec['mean_precision'] == 'bf16' and name in PLANNED
        scale = read_scale(stream, 16 if half else 32, signed)
    if name == 'mcgq':
        return [level_value(read_level(stream), scale) for _ in range(k)]
    return [-scale if signed and stream.get(1) else scale for _ in range(k)]


def read_count(stream, plan, all_planned, n):
    if plan is None:
        k, most = stream.get(n.bit_length()), n
    elif all_planned or stream.get(1):
        return plan
    else:
        k, most = stream.get((plan - 1).bit_length()), plan - 1
    if k > most:
        raise ValueError('a bad count')
    return k


def decode_sparse(spec, sizes, message):
    stream = Stream(message)
    has_plan = spec['name'] in PLANNED
    all_planned = has_plan and stream.get(1) == 1
    tensors, counts = [], []
    plans = planned_counts(spec, sizes) if has_plan else [None] * len(sizes)
    for n, plan in zip(sizes, plans):
        counts.append(read_count(stream, plan, all_planned, n))
        tensor = [0.0] * n
        if counts[-1]:
            values = read_values(spec, stream, counts[-1])
            for i, x in zip(position_decoders.read(spec['positions'], stream, counts[-1], n), values):
                tensor[i] = x
        tensors.append(tensor)
    if has_plan and not all_planned and counts == plans:
        raise ValueError('corrects no count')
    stream.finish()
    return tensors


def decode_random(spec, sizes, message):
    stream = Stream(message)
    seed = stream.get(64)
    tensors = [[0.0] * n for n in sizes]
    for t, (tensor, k) in enumerate(zip(tensors, planned_counts(spec, sizes))):
        for i in choose(seed, t, k, len(tensor)):
            tensor[i] = read_float(stream, True)
    stream.finish()
    return tensors


def read_rle(stream, n):
    begin = stream.at
    level_bits, run_bits = stream.get(32), stream.get(32)
    if not 1 <= level_bits <= 32 or run_bits > n.bit_length():
        raise ValueError('bad widths')
    levels = []
    while len(levels) < n:
        word = stream.get(level_bits)
        if word:
            levels.append(word - 2**level_bits if word >> level_bits - 1 else word)
        else:
            levels += [0] * stream.get(run_bits)
            if run_bits == 0 or len(levels) > n:
                raise ValueError('a bad run')
        if stream.at - begin > 64 + 64 * n:
            raise ValueError('runs without end')
    if rle_bits(levels) != stream.bits[begin:stream.at]:
        raise ValueError('levels that are not written like this')
    return levels


def decode_rle(sizes, message):
    stream = Stream(message)
    tensors = []
    for n in sizes:
        bits = stream.get(32)
        levels = read_rle(stream, n)
        if bits >= INFINITY_BITS or (bits > 0) != any(levels):
            raise ValueError('a bad scale')
        tensors.append([level_value(level, float_of(bits)) if level else 0.0 for level in levels])
    stream.finish()
    return tensors


def decode(spec, sizes, message):
    spec = {**DEFAULTS, **spec}
    if not message or message[0] != NUMBERS[spec['name']]:
        raise ValueError('another format')
    if spec['name'] == 'random_sparse':
        return decode_random(spec, sizes, message)
    if spec['name'] == 'mcgq' and spec['code'] == 'simple':
        return decode_rle(sizes, message)
    return decode_sparse(spec, sizes, message)
