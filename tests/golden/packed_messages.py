#!/usr/bin/env python3
"""Whole packed messages and the state of a client's history, from the text of compression/FORMAT.md alone.

  packed_messages.py            writes packed_messages.txt beside this script
  packed_messages.py --check    exits with 1 when the file differs from what would be written
"""
import pathlib
import random
import struct
import sys

import sparse
from common import f32, field, pack
from make_golden import DEFAULTS, merged
from position_coders import rice
from shared_positions import History, shared


def product(shape):
    size = 1
    for count in shape:
        size *= count
    return size


class Codec:
    """A codec of positions with a planned or free count, with a history for each of its groups."""

    def __init__(self, specs, shapes):
        self.specs = [{**sparse.DEFAULTS, **spec} for spec in specs]
        self.shapes = shapes
        self.groups = merged({**DEFAULTS, **specs[0]}, [range(product(shape)) for shape in shapes])
        self.histories = [self.new_history(group) for group in self.groups]

    def new_history(self, group):
        shape = self.shapes[group[0]] if len(group) == 1 else [sum(product(self.shapes[t]) for t in group)]
        rows = shape[0] if shape else 1
        return History(rows, product(shape) // rows)

    def messages(self, choice, tensors, buffers):
        """The message and the packed one; then the message is part of the history."""
        spec = self.specs[choice]
        tensors = [sum((tensors[t] for t in group), []) for group in self.groups]
        counts = sparse.planned_counts(spec, [len(tensor) for tensor in tensors])
        parts = [sparse.part_of(spec, tensor, t, counts[t], None, tensor, None) for t, tensor in enumerate(tensors)]
        plans = counts if spec['name'] in sparse.PLANNED else None
        sides = [int(part.scale is not None and part.scale < 0) for part in parts]

        def by_history(t, positions):
            plain = [(bit, 1) for bit in rice(positions, len(tensors[t]))]
            return sum((field(*bits) for bits in shared(self.histories[t], sides[t], positions, plain)), [])

        bits = sparse.message_bits(spec, tensors, parts, plans)
        packed_bits = sparse.message_bits(spec, tensors, parts, plans, by_history)
        for history, part, side in zip(self.histories, parts, sides):
            history.add(part.positions, side)
        front = bytes([0x1a, choice]) if len(self.specs) > 1 else b''
        tail = b''.join(struct.pack('<f', value) for value in buffers)
        return (front + pack(sparse.NUMBERS[spec['name']], bits) + tail, front + pack(0x1b, packed_bits) + tail)

    def state(self):
        return b'\1' + b''.join(history.state() for history in self.histories)


def update(draw, shape):
    """One element in seven is as large in every message; now and then a tensor does not move."""
    if draw.random() < 0.1:
        return [0.0] * product(shape)
    shift = draw.choice((-0.5, 0.5))
    return [f32((draw.gauss(0, 1) + shift) * (8 if i % 7 == 0 else 1)) for i in range(product(shape))]


CASES = (
    ('sbc', [{'name': 'sbc', 'density': 0.05}], [[24, 5, 10], [700], []], 0, 9),
    ('choice-and-buffers', [{'name': 'sbc', 'density': 0.1, 'mean_precision': 'bf16'},
                            {'name': 'stc', 'density': 0.06}], [[30, 40], [9, 80]], 3, 8),
    ('grouped-free-counts', [{'name': 'dgc', 'density': 0.08, 'grouping': 'merge_small', 'merge_below': 500}],
     [[20], [400], [16, 50], [10, 20]], 2, 6),
)


def lines():
    """`codec` for each choice, `layout` (shapes, a scalar is `scalar`), `buffers`; then for each message its bytes, those
    of the packed one, and of the history behind it every third time and at last."""
    draw = random.Random(27)
    yield '# Written by packed_messages.py from compression/FORMAT.md.'
    for name, specs, shapes, buffers, count in CASES:
        specs = [dict(spec, positions='rice') for spec in specs]
        codec = Codec(specs, shapes)
        yield f'case {name}'
        yield from ('codec ' + ' '.join(f'{key}={value}' for key, value in spec.items()) for spec in specs)
        yield 'layout ' + ' '.join('x'.join(map(str, shape)) or 'scalar' for shape in shapes)
        yield f'buffers {buffers}'
        for number in range(count):
            message, packed = codec.messages(number % len(specs), [update(draw, shape) for shape in shapes],
                                             [f32(draw.gauss(0, 1)) for _ in range(buffers)])
            yield f'message {message.hex()}'
            yield f'packed {packed.hex()}'
            if number % 3 == 2 or number + 1 == count:
                yield f'state {codec.state().hex()}'


if __name__ == '__main__':
    path = pathlib.Path(__file__).with_name('packed_messages.txt')
    text = '\n'.join(lines()) + '\n'
    if '--check' in sys.argv[1:]:
        sys.exit(0 if path.read_text() == text else f'{path} is not what this script writes; run it')
    path.write_text(text)
