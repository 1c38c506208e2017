"""Encoders of positions, from the text of compression/FORMAT.md alone.

Each function of CODERS takes the increasing positions of one tensor and its size, and returns a list of bits.
"""
from decimal import Decimal, getcontext

getcontext().prec = 60


def field(value, width):
    return [value >> i & 1 for i in range(width)]


def unary(value):
    return [0] * value + [1]


def log2(value):
    return value.bit_length() - 1


def gaps(positions):
    return [position - previous - 1 for previous, position in zip([-1] + positions, positions)]


def rice_parameter(k, n):
    if k == n:
        return 0
    inverse_phi = (Decimal(5).sqrt() - 1) / 2  # phi - 1
    ratio = inverse_phi.ln() / (1 - Decimal(k) / Decimal(n)).ln()
    return max(0, 1 + (ratio.ln() / Decimal(2).ln()).__floor__())


def rice(positions, size):
    b = rice_parameter(len(positions), size)
    bits = []
    for z in gaps(positions):
        bits += field(z % 2**b, b)
    for z in gaps(positions):
        bits += unary(z >> b)
    return bits


def golomb_parameter(k, n):
    q = (n - k) * 2**64 // n
    powers = [q]
    for _ in range(30):
        powers.append(powers[-1]**2 >> 64)
    half = (2**64 + q) // 2
    m = 0
    for i in reversed(range(31)):
        product = half * powers[i] >> 64
        if product > 2**63:
            half = product
            m += 2**i
    return m + 1


def golomb(positions, size):
    m = golomb_parameter(len(positions), size)
    width = log2(m)
    u = 2**(width + 1) - m
    fixed, rest = [], []
    for z in gaps(positions):
        r = z % m
        rest += unary(z // m)
        if r < u:
            fixed += field(r, width)
        else:
            fixed += field((r + u) // 2, width)
            rest += field((r + u) % 2, 1)
    return fixed + rest


def gamma(value):
    width = log2(value)
    return unary(width) + field(value - 2**width, width)


def delta(value):
    width = log2(value)
    return gamma(width + 1) + field(value - 2**width, width)


def elias_gamma(positions, size):
    return sum((gamma(z + 1) for z in gaps(positions)), [])


def elias_delta(positions, size):
    return sum((delta(z + 1) for z in gaps(positions)), [])


def counters(positions, width):
    largest = 2**width - 1
    bits = []
    for z in gaps(positions):
        bits += field(largest, width) * (z // largest) + field(z % largest, width)
    return bits


def run_length(positions, size):
    cost = {w: w * sum(z // (2**w - 1) + 1 for z in gaps(positions)) for w in range(1, 32)}
    width = min(cost, key=lambda w: (cost[w], w))
    return field(width, 5) + counters(positions, width)


def fixed16(positions, size):
    return counters(positions, 16)


def chunk12(positions, size):
    chunks = (size + 4095) // 4096
    counts = [sum(position // 4096 == chunk for position in positions) for chunk in range(chunks - 1)]
    header = []
    if chunks > 1:
        equal = len(set(counts)) == 1
        header = [int(equal)] + sum((field(count, 13) for count in (counts[:1] if equal else counts)), [])
    return header + sum((field(position % 4096, 12) for position in positions), [])


def gap_class_of(z):
    if z < 4:
        return z, 0
    extra = log2(z) - 1
    return 2 * extra + (z >> extra), extra


def weight(level):
    return (2 + (level - 1) % 2) * 2**((level - 1) // 2) if level else 0


def class_levels(classes):
    counts = [classes.count(c) for c in range(max(classes) + 1)]
    most = max(counts)
    return [max(l for l in range(1, 16) if l == 1 or 512 * a >= (weight(l - 1) + weight(l)) * most) if a else 0
            for a in counts]


def class_frequencies(levels):
    total = sum(weight(level) for level in levels)
    frequencies = [max(1, 4096 * weight(level) // total) if level else 0 for level in levels]
    frequencies[levels.index(15)] += 4096 - sum(frequencies)
    return frequencies


def gap_class(positions, size):
    zeros = gaps(positions)
    classes = [gap_class_of(z)[0] for z in zeros]
    levels = class_levels(classes)
    frequencies = class_frequencies(levels)
    state = 2**16
    words = []
    for c in reversed(classes):
        f = frequencies[c]
        words.append([])
        if state >= f << 20:
            words[-1] = field(state % 2**16, 16)
            state >>= 16
        state = (state // f << 12) + state % f + sum(frequencies[:c])
    bits = field(len(levels) - 1, 6)
    for level in levels:
        bits += field(level, 4)
    bits += field(state, 32)
    for z, word in zip(zeros, reversed(words)):
        extra = gap_class_of(z)[1]
        bits += word + field(z % 2**extra, extra)
    return bits


def auto(positions, size):
    choices = [[1] + rice(positions, size)]
    for selector, coder in enumerate((golomb, gap_class, elias_gamma, elias_delta)):
        choices.append([0] + field(selector, 2) + coder(positions, size))
    return min(choices, key=len)  # the first of several


CODERS = {coder.__name__: coder
          for coder in (rice, golomb, gap_class, elias_gamma, elias_delta, run_length, fixed16, chunk12, auto)}
