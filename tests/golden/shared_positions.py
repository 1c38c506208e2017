#!/usr/bin/env python3
"""The position coder "shared" and its history, from the text of compression/FORMAT.md alone.

  shared_positions.py            writes shared_positions.txt beside this script
  shared_positions.py --check    exits with 1 when the file differs from what would be written
"""
import pathlib
import random
import sys

from position_coders import rice as rice_bits

RATES = [19, 27, 38, 54, 76, 108, 152, 215, 304, 431, 609, 861, 1218, 1722, 2436, 3444]
AGES = 3
LEVELS = 16


def log_eighths(value):
    """8 * floor(log2 v) and the three bits behind the highest one."""
    whole = value.bit_length() - 1
    fraction = (value << 3 >> whole) & 7
    return 8 * whole + fraction


class History:
    def __init__(self, rows, columns):
        self.rows, self.columns, self.size = rows, columns, rows * columns
        self.lined = rows >= 8 and columns >= 8
        self.lines = {(axis, side): [0] * count for axis, count in (("row", rows), ("column", columns))
                      for side in (0, 1)}
        self.fade = 8 * max(rows, columns)
        self.last = {}  # element: (block, side)
        self.blocks = [0]  # positions of each, the growing one last
        self.messages = 0
        self.sent = {}
        self.seen = {}

    def limits(self):
        limits = []
        for a in range(1, AGES + 1):
            b, together = 0, 0
            while b < 64 and together * 8 < self.size * 2 ** (a - 1):
                together += self.blocks[-1 - b] if b < len(self.blocks) else 0
                b += 1
            limits.append(b)
        return limits

    def levels(self, axis, side):
        weights = [3 * own + other for own, other in zip(self.lines[axis, side], self.lines[axis, 1 - side])]
        mean = sum(weights) // len(weights)
        prior = mean // 16 + 16
        even = log_eighths(mean + prior)
        return [min(127, max(0, log_eighths(w + prior) - even + 64)) for w in weights]

    def cells(self, side):
        """A function of the element: its cell for a message of that side."""
        limits = self.limits()
        rows = self.levels("row", side) if self.lined else None
        columns = self.levels("column", side) if self.lined else None
        now = len(self.blocks) - 1

        def cell(element):
            bin_ = 0
            if element in self.last:
                block, sent_on = self.last[element]
                age = now - block
                below = [a for a in range(AGES) if age < limits[a]]
                if below and age < 64:
                    bin_ = below[0] + 1 + (AGES if sent_on == side else 0)
            level = 8
            if self.lined:
                both = rows[element // self.columns] + columns[element % self.columns]
                level = min(15, max(0, both - 96) // 4)
            return bin_, level

        return cell

    def add(self, positions, side):
        if not positions:
            return
        for cells in (self.sent, self.seen):
            for cell in cells:
                cells[cell] -= cells[cell] // 8
        cell_of = self.cells(side)
        for position in positions:
            cell = cell_of(position)
            self.sent[cell] = self.sent.get(cell, 0) + 256
        every = max(1, self.size // 32768)
        for run in range(self.messages % every, (self.size + 63) // 64, every):
            for element in range(64 * run, min(self.size, 64 * run + 64)):
                cell = cell_of(element)
                self.seen[cell] = self.seen.get(cell, 0) + 256 * every
        self.messages += 1
        for position in positions:
            self.lines["row", side][position // self.columns] += 16
            self.lines["column", side][position % self.columns] += 16
            self.last[position] = (len(self.blocks) - 1, side)
        self.fade -= len(positions)
        while self.fade <= 0:
            for key, counts in self.lines.items():
                self.lines[key] = [count // 2 for count in counts]
            self.fade += 8 * max(self.rows, self.columns)
        self.blocks[-1] += len(positions)
        if self.blocks[-1] * 128 >= self.size:
            self.blocks.append(0)

    def state(self):
        """The bytes that disks keep."""
        now = len(self.blocks) - 1
        swept = now // 32 * 32
        fade = self.fade if self.lined else 8 * max(self.rows, self.columns)
        out = b''.join(n.to_bytes(8, 'little') for n in (now, fade, self.messages))
        newest = {block % 128: count for block, count in enumerate(self.blocks) if block > now - 128}
        out += b''.join(newest.get(i, 0).to_bytes(4, 'little') for i in range(128))
        for cells in (self.sent, self.seen):
            out += b''.join(cells.get((b, level), 0).to_bytes(8, 'little')
                            for b in range(1 + 2 * AGES) for level in range(LEVELS))
        if self.lined:
            out += b''.join(count.to_bytes(4, 'little') for axis in ('row', 'column') for side in (0, 1)
                            for count in self.lines[axis, side])
        last = bytearray()
        for element in range(self.size):
            block, side = self.last.get(element, (-1, 0))
            known = block >= 0 and swept - block < 64
            last.append(block % 128 + 128 * side if known else (swept - 95) % 128)
        return out + bytes(last)

    def masses(self, side):
        cell_of = self.cells(side)
        sent, seen = sum(self.sent.values()), sum(self.seen.values())
        table = {}

        def mass(element):
            cell = cell_of(element)
            if sent == 0:
                return 16
            if cell not in table:
                over = (256 * self.sent.get(cell, 0) + 512 * RATES[cell[1]]) * seen * 16
                even = (self.seen.get(cell, 0) + 512 * seen // sent) * sent * 256
                table[cell] = min(255, max(1, (over + even // 2) // even))
            return table[cell]

        return [mass(element) for element in range(self.size)]


def model(count, size):
    s = 0
    while count << (s + 1) <= 16 * size:
        s += 1
    on = (1 << 32) - ((count << (32 + s)) // (16 * size) >> 6)
    for _ in range(6):
        on = on * on >> 32
    frequencies, reached = [], 1 << 32
    for _ in range(15):
        following = reached * on >> 32
        frequencies.append(max(1, reached - following >> 20))
        reached = following
    frequencies[0] -= max(0, sum(frequencies) - 4095)
    frequencies.append(4096 - sum(frequencies))
    return s, frequencies


def shared(history, side, positions, rice):
    """The bits, as a list of (value, width); `rice` are those of the coder rice."""
    count, size = len(positions), history.size
    if history.messages == 0 or count < 32:
        return rice
    s, frequencies = model(count, size)
    if s > 15:
        return rice
    begins = [sum(frequencies[:q]) for q in range(16)]
    masses = history.masses(side)
    if count < 2048:
        lanes, ends = [(0, positions)], []
    else:
        half = count // 2  # of the rest, rounded up
        ends = [positions[half]]
        lanes = [(0, positions[:half]), (ends[0] + 1, positions[half + 1:])]
    mass_before = [0]
    for mass in masses:
        mass_before.append(mass_before[-1] + mass)
    lane_symbols, states, words = [], [], []
    for after, lane in lanes:
        symbols = []
        for position in lane[:-1]:
            gap = mass_before[position] - mass_before[after]
            symbols.append((gap >> s, gap % (1 << s), min(masses[position], (1 << s) - gap % (1 << s))))
            after = position + 1
        lane_symbols.append(symbols)
        states.append((1 << 16) + lane[-1] - lane[-2] - 1)

    def push(lane, frequency, begin, bits):
        if states[lane] >= frequency << (32 - bits):
            words.append(states[lane] % 65536)
            states[lane] >>= 16
        states[lane] = (states[lane] // frequency << bits) + states[lane] % frequency + begin

    for j in reversed(range(len(lane_symbols[0]))):
        for lane in reversed(range(len(lanes))):
            if j >= len(lane_symbols[lane]):
                continue
            windows, slot, slots = lane_symbols[lane][j]
            push(lane, slots, slot, s)
            push(lane, frequencies[windows % 15], begins[windows % 15], 12)
            for _ in range(windows // 15):
                push(lane, frequencies[15], begins[15], 12)
    coded = []
    for lane, state in enumerate(states):
        length = state.bit_length()
        coded += [(length - 17, 4), (state - (1 << (length - 1)), length - 1)]
        if lane < len(ends):
            coded.append((ends[lane], (size - 1).bit_length()))
    coded += [(word, 16) for word in reversed(words)]
    if sum(width for _, width in coded) < sum(width for _, width in rice):
        return [(0, 1)] + coded
    return [(1, 1)] + rice


def lines():
    """`tensor ROWS COLUMNS`, then for each message `SIDE POSITION...` and the bytes that its positions take; of small
    tensors at the end `state` and the state's bytes."""
    draw = random.Random(6)
    # With 64 positions of 4,096 elements the frequencies of the windows need what is taken from the first.
    # The last three: a lane of the most positions, and two with the fewest, of the same length and not.
    cases = ((20, 30, 0.4, 24, 0), (1, 3000, 0.08, 30, 0), (9, 200, 0.15, 150, 0), (60, 90, 0.05, 30, 0),
             (300, 1, 0.9, 3, 0), (250, 280, 0.004, 6, 0), (64, 64, 0.06, 6, 64), (250, 280, 0.15, 2, 2047),
             (250, 280, 0.15, 2, 2048), (250, 280, 0.15, 2, 2049))
    for rows, columns, density, messages, count in cases:
        yield f'tensor {rows} {columns}'
        history = History(rows, columns)
        lively = [i for i in range(rows * columns) if draw.random() < density * 2 * draw.random()]
        for _ in range(messages):
            side = draw.randrange(2)
            positions = [i for i in lively if draw.random() < 0.25] or [0]
            if count > 0:
                positions = sorted(draw.sample(lively, count))
            rice = [(bit, 1) for bit in rice_bits(positions, rows * columns)]
            value = width = 0
            for field, bits in shared(history, side, positions, rice):
                value |= field << width
                width += bits
            yield ' '.join(map(str, [side] + positions))
            yield f'{width} {value.to_bytes((width + 7) // 8, "little").hex()}'
            history.add(positions, side)
        if rows * columns < 5000:
            yield f'state {history.state().hex()}'


if __name__ == '__main__':
    path = pathlib.Path(__file__).with_name('shared_positions.txt')
    text = '\n'.join(lines()) + '\n'
    if '--check' in sys.argv[1:]:
        sys.exit(0 if path.read_text() == text else f'{path} is not what this script writes; run it')
    path.write_text(text)
