"""What the encoders and decoders in Python share: the float32 numbers and bit streams of compression/FORMAT.md."""
import math
import struct
from fractions import Fraction

LARGEST = struct.unpack('<f', b'\xff\xff\x7f\x7f')[0]
SMALLEST = 2.0**-149
INFINITY_BITS = 0x7F800000


def bits_of(x):
    return struct.unpack('<I', struct.pack('<f', x))[0]


def float_of(bits):
    return struct.unpack('<f', struct.pack('<I', bits))[0]


def f32(x):
    """Rounded to float32 as IEEE has it; struct refuses what becomes infinite."""
    try:
        return float_of(bits_of(x))
    except OverflowError:
        return math.copysign(math.inf, x)


def nearest(x):
    """The finite float32 nearest to x >= 0."""
    return f32(x) if x < LARGEST else LARGEST


def positive(x):
    """The finite float32 above zero nearest to x > 0."""
    return max(nearest(x), SMALLEST)


def bf16(x):
    """The nearest positive bfloat16, by comparing distances to the two neighbours."""
    low = bits_of(x) >> 16
    candidates = [c for c in (low, low + 1) if 0 < c < 0x7F80]
    return float_of(min(candidates, key=lambda c: (abs(Fraction(float_of(c << 16)) - Fraction(x)), c & 1)) << 16)


def lane_sum(terms):
    s = [0.0] * 8
    for i, term in enumerate(terms):
        s[i % 8] += term
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))


def field(value, width):
    return [value >> i & 1 for i in range(width)]


def unary(value):
    return [0] * value + [1]


def pack(number, bits):
    """A message: the format's number, then the stream, padded to whole bytes."""
    return bytes([number]) + sum(bit << i for i, bit in enumerate(bits)).to_bytes((len(bits) + 7) // 8, 'little')


class Stream:
    """Reads the bits behind the format's number."""

    def __init__(self, message):
        self.bits = [byte >> i & 1 for byte in message[1:] for i in range(8)]
        self.at = 0

    def get(self, width):
        if self.at + width > len(self.bits):
            raise ValueError('truncated')
        self.at += width
        return sum(bit << i for i, bit in enumerate(self.bits[self.at - width:self.at]))

    def unary(self):
        zeros = 0
        while not self.get(1):
            zeros += 1
        return zeros

    def finish(self):
        rest = self.bits[self.at:]
        if len(rest) >= 8 or any(rest):
            raise ValueError('bits behind the last element')
