"""Decoders of positions, from the text of compression/FORMAT.md alone: the inverse of position_coders.py.

DECODERS[name](stream, count, size) reads `count` positions of a tensor of `size` elements from a common.Stream.
"""
import position_coders
from position_coders import class_frequencies, golomb_parameter, log2, rice_parameter


def positions_of(gaps):
    positions, next_position = [], 0
    for zeros in gaps:
        positions.append(next_position + zeros)
        next_position = positions[-1] + 1
    return positions


def rice(stream, count, size):
    b = rice_parameter(count, size)
    remainders = [stream.get(b) for _ in range(count)]
    return positions_of([r + (stream.unary() << b) for r in remainders])


def golomb(stream, count, size):
    m = golomb_parameter(count, size)
    width = log2(m)
    u = 2**(width + 1) - m
    gaps = []
    for upper in [stream.get(width) for _ in range(count)]:
        quotient = stream.unary()
        remainder = upper if upper < u else 2 * upper + stream.get(1) - u
        gaps.append(quotient * m + remainder)
    return positions_of(gaps)


def get_gamma(stream):
    width = stream.unary()
    return 2**width + stream.get(width)


def get_delta(stream):
    width = get_gamma(stream) - 1
    return 2**width + stream.get(width)


def elias_gamma(stream, count, size):
    return positions_of([get_gamma(stream) - 1 for _ in range(count)])


def elias_delta(stream, count, size):
    return positions_of([get_delta(stream) - 1 for _ in range(count)])


def counters(stream, count, width):
    if width == 0:
        raise ValueError('counters of no bits')
    gaps = []
    for _ in range(count):
        zeros = 0
        while True:
            counter = stream.get(width)
            zeros += counter
            if counter < 2**width - 1:
                break
        gaps.append(zeros)
    return positions_of(gaps)


def run_length(stream, count, size):
    return counters(stream, count, stream.get(5))


def fixed16(stream, count, size):
    return counters(stream, count, 16)


def chunk12(stream, count, size):
    chunks = (size + 4095) // 4096
    counts = []
    if chunks > 1:
        equal = stream.get(1)
        counts = [stream.get(13) for _ in range(1 if equal else chunks - 1)] * (chunks - 1 if equal else 1)
    counts.append(count - sum(counts))
    if min(counts) < 0:
        raise ValueError('counts that do not add up')
    return [4096 * chunk + stream.get(12) for chunk, own in enumerate(counts) for _ in range(own)]


def gap_class(stream, count, size):
    levels = [0] * (stream.get(6) + 1)
    levels = [stream.get(4) for _ in levels]
    frequencies = class_frequencies(levels)
    state = stream.get(32)
    gaps = []
    for _ in range(count):
        slot = state % 4096
        c = 0
        while sum(frequencies[:c + 1]) <= slot:
            c += 1
        state = frequencies[c] * (state >> 12) + slot - sum(frequencies[:c])
        if state < 2**16:
            state = state << 16 | stream.get(16)
        extra = 0 if c < 4 else (c - 2) // 2
        upper = c if c < 4 else c - 2 * extra
        gaps.append((upper << extra) + stream.get(extra))
    return positions_of(gaps)


def auto(stream, count, size):
    """Any choice is read, the shortest or not."""
    name = 'rice' if stream.get(1) else ('golomb', 'gap_class', 'elias_gamma', 'elias_delta')[stream.get(2)]
    return read(name, stream, count, size)


DECODERS = {name: globals()[name] for name in position_coders.CODERS}


def read(name, stream, count, size):
    """The positions, ValueError unless they lie in the tensor and the coder would have written the same bits."""
    begin = stream.at
    positions = DECODERS[name](stream, count, size)
    if name == 'auto':
        return positions
    if positions[-1] >= size or position_coders.CODERS[name](positions, size) != stream.bits[begin:stream.at]:
        raise ValueError('positions that the coder does not write')
    return positions
