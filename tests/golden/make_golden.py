#!/usr/bin/env python3
"""Writes compression.txt: updates and the messages they must become, from the text of compression/FORMAT.md alone.

  make_golden.py            writes the file beside this script
  make_golden.py --check    exits with 1 when the file differs from what would be written
"""
import pathlib
import random
import struct
import sys
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60
INVERSE_PHI = (Decimal(5).sqrt() - 1) / 2  # phi - 1


def f32(x):
    return struct.unpack('<f', struct.pack('<f', x))[0]


def f32_bits(x):
    return struct.unpack('<I', struct.pack('<f', x))[0]


def bits_f32(bits):
    return struct.unpack('<f', struct.pack('<I', bits))[0]


def bf16(x):
    """The nearest positive bfloat16, by comparing distances to the two neighbours."""
    low = f32_bits(x) >> 16
    candidates = [c for c in (low, low + 1) if 0 < c < 0x7f80]
    return min(candidates, key=lambda c: (abs(Fraction(bits_f32(c << 16)) - Fraction(x)), c & 1)) << 16


def planned(p, n):
    return min(n, max(1, (Fraction(p * n) + Fraction(1, 2)).__floor__()))


def rice_parameter(k, n):
    if k == n:
        return 0
    ratio = INVERSE_PHI.ln() / (1 - Decimal(k) / Decimal(n)).ln()
    return max(0, 1 + (ratio.ln() / Decimal(2).ln()).__floor__())


def field(value, width):
    return [value >> i & 1 for i in range(width)]


def choose_side(tensor, k):
    sides = []
    for sign in (1, -1):
        order = sorted((-sign * x, i) for i, x in enumerate(tensor) if sign * x > 0)
        positions = sorted(i for _, i in order[:k])
        total = 0.0
        for i in positions:
            total += sign * tensor[i]
        sides.append((total, sign, positions))
    return sides[0] if sides[0][0] >= sides[1][0] else sides[1]


def encode_sbc(tensors, p, precision):
    counts, heads, remainders, quotients = [], [], [], []
    for tensor in tensors:
        plan = planned(p, len(tensor))
        total, sign, positions = choose_side(tensor, plan)
        k = len(positions)
        counts.append((k, plan))
        mean = []
        if k > 0:
            value = f32(total / k)
            bits = (bf16(value) if precision == 'bf16' else f32_bits(value)) | (sign < 0) << 31
            mean = field(bits, 32) if precision == 'fp32' else field(bits >> 16, 16)
            b = rice_parameter(k, len(tensor))
            for previous, position in zip([-1] + positions, positions):
                d = position - previous - 1
                remainders += field(d % 2**b, b)
                quotients += [0] * (d // 2**b) + [1]
        heads.append(mean)
    all_planned = all(k == plan for k, plan in counts)
    stream = [int(all_planned)]
    for (k, plan), mean in zip(counts, heads):
        if not all_planned:
            stream += [1] if k == plan else [0] + field(k, (plan - 1).bit_length())
        stream += mean
    stream += remainders + quotients
    number = sum(bit << i for i, bit in enumerate(stream))
    return bytes([2 if precision == 'fp32' else 3]) + number.to_bytes((len(stream) + 7) // 8, 'little')


def encode_dense(tensors):
    return b'\x01' + b''.join(struct.pack('<f', x) for tensor in tensors for x in tensor)


def varint(value):
    out = b''
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def downstream_dense(updates):
    """Of dense updates, so that the average needs no decoder."""
    scale = f32(1 / len(updates))
    average = [0.0] * len(updates[0])
    for update in updates:
        average = [f32(a + x) for a, x in zip(average, update)]
    return b'\x82' + b''.join(struct.pack('<f', f32(a * scale)) for a in average)


def random_tensor(rng, n, kind):
    if kind == 'gauss':
        return [f32(rng.gauss(0, 0.01)) for _ in range(n)]
    if kind == 'ties':
        return [rng.choice([-0.5, -0.25, 0.0, 0.25, 0.5]) for _ in range(n)]
    if kind == 'sparse':
        return [f32(rng.gauss(0, 1)) if rng.random() < 0.01 else 0.0 for _ in range(n)]
    if kind == 'negative':
        return [-f32(rng.expovariate(1)) for _ in range(n)]
    if kind == 'denormal':
        return [bits_f32(rng.randrange(1, 0x8000) | rng.randrange(2) << 31) for _ in range(n)]
    return [bits_f32(rng.randrange(0x7f7f0000, 0x7f800000)) for _ in range(n)]  # huge


def update_cases():
    yield 'worked-example', 'sbc', 0.3, 'fp32', [[0.5, -4.0, 3.0, 0.0, 2.5, 1.0], [0.0, 0.0, 0.0]]
    yield 'tie-of-sides', 'sbc', 0.5, 'fp32', [[-1.0, 1.0, -1.0, 1.0], [-2.0], [-0.0, 0.0]]
    yield 'bf16-halfway', 'sbc', 1.0, 'bf16', [[bits_f32(0x3f808000)], [bits_f32(0x3f818000)], [bits_f32(0xbf818001)]]
    rng = random.Random(20180522)
    for kind in ('gauss', 'ties', 'sparse', 'negative', 'denormal', 'huge'):
        for p, precision in ((0.001, 'fp32'), (0.01, 'bf16'), (0.29, 'fp32'), (1.0, 'bf16')):
            sizes = [1, 7, 100, 200] if p > 0.05 else [300, 20, 700, 10]
            yield f'{kind}-{p}-{precision}', 'sbc', p, precision, [random_tensor(rng, n, kind) for n in sizes]
    yield 'dense', 'dense', 1.0, 'fp32', [random_tensor(rng, n, 'gauss') for n in (3, 40)]


def render():
    lines = ['# Written by make_golden.py from compression/FORMAT.md; floats are the hexadecimal digits of their bits.']
    for name, codec, p, precision, tensors in update_cases():
        message = encode_dense(tensors) if codec == 'dense' else encode_sbc(tensors, p, precision)
        lines += ['', f'case {name}', f'codec {codec} {p} {precision}',
                  'layout ' + ' '.join(str(len(tensor)) for tensor in tensors),
                  'update ' + ' '.join('%08x' % f32_bits(x) for tensor in tensors for x in tensor),
                  f'message {message.hex()}']
    rng = random.Random(1)
    updates = [random_tensor(rng, 40, 'gauss') for _ in range(3)]
    messages = [encode_dense([update]) for update in updates]
    forward = b'\x81' + varint(len(messages)) + b''.join(varint(len(m)) + m for m in messages)
    lines += ['', 'case downstream', 'codec dense 1.0 fp32', 'layout 40'] + [f'message {m.hex()}' for m in messages]
    lines += [f'forward {forward.hex()}', f'average {downstream_dense(updates).hex()}']
    return '\n'.join(lines) + '\n'


def main():
    path = pathlib.Path(__file__).with_name('compression.txt')
    if '--check' in sys.argv[1:]:
        if path.read_text() != render():
            sys.exit(f'{path} is not what make_golden.py writes; run it and look at the difference')
        return
    path.write_text(render())


if __name__ == '__main__':
    main()
