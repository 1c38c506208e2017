"""The messages of compression/FORMAT.md, "Quantized messages", in Python, written from that text alone.

`spec` is a dict of the run's codec settings (name, bits, code, bucket, clip), `tensors` a list of lists of numbers that
float32 can hold, `key` = (run, round, client).

  encode(spec, tensors, key) -> bytes
  decode(spec, sizes, message) -> list of lists of floats; ValueError for what no encoder writes
"""
import math
import struct

import philox
from common import (INFINITY_BITS, LARGEST, Stream, bits_of, f32, field, float_of, lane_sum, nearest, pack)


def up(x):
    y = nearest(x)
    return y if y >= x or y == LARGEST else float_of(bits_of(y) + 1)


def chance(x):
    return round(x * 2**32) / 2**32


def is_signed(x):
    return math.copysign(1.0, x) < 0


class FixedWidth:
    def __init__(self, width):
        self.width = width

    def put(self, symbols):
        return [bit for symbol in symbols for bit in field(symbol, self.width)]

    def get(self, stream, count):
        return [stream.get(self.width) for _ in range(count)]


class BaseThree:
    def put(self, symbols):
        bits = []
        for i in range(0, len(symbols), 5):
            bits += field(sum(digit * 3**j for j, digit in enumerate(symbols[i:i + 5])), 8)
        return bits

    def get(self, stream, count):
        symbols = []
        while len(symbols) < count:
            value = stream.get(8)
            symbols += [value // 3**j % 3 for j in range(5)]
            if value > 242 or any(symbols[count:]):
                raise ValueError('bad digits')
        return symbols[:count]


def elias(n):
    bits = [0]
    while n > 1:
        digits = [int(digit) for digit in bin(n)[2:]]
        bits = digits + bits
        n = len(digits) - 1
    return bits


def get_elias(stream, most):
    n = 1
    while stream.get(1):
        if n > 31:
            raise ValueError('a long code word')
        digits = [1] + [stream.get(1) for _ in range(n)]
        n = int(''.join(map(str, digits)), 2)
    if n > most:
        raise ValueError('out of range')
    return n


class Elias:
    def __init__(self, levels):
        self.levels = levels

    @staticmethod
    def sparse(symbols):
        bits, last = [0], -1
        for place, symbol in enumerate(symbols):
            if symbol > 0:
                bits += elias(place - last) + [symbol & 1] + elias(symbol >> 1)
                last = place
        return bits + (elias(len(symbols) - last) if last < len(symbols) - 1 else [])

    @staticmethod
    def dense(symbols):
        bits = [1]
        for symbol in symbols:
            bits += elias((symbol >> 1) + 1) + ([symbol & 1] if symbol > 0 else [])
        return bits

    def put(self, symbols):
        return min(self.sparse(symbols), self.dense(symbols), key=len)

    def get(self, stream, count):
        begin = stream.at
        symbols = self.get_dense(stream, count) if stream.get(1) else self.get_sparse(stream, count)
        if self.put(symbols) != stream.bits[begin:stream.at]:
            raise ValueError('the longer code')
        return symbols

    def get_sparse(self, stream, count):
        symbols = []
        while len(symbols) < count:
            zeros = get_elias(stream, count - len(symbols) + 1) - 1
            symbols += [0] * zeros
            if len(symbols) < count:
                sign = stream.get(1)
                symbols.append(2 * get_elias(stream, self.levels) + sign)
        return symbols

    def get_dense(self, stream, count):
        symbols = []
        for _ in range(count):
            level = get_elias(stream, self.levels + 1) - 1
            symbols.append(2 * level + (stream.get(1) if level > 0 else 0))
        return symbols


class Codec:
    """One section of the format. `header` and `symbols` encode a bucket, `value` decodes a symbol, `refuse` says whether
    a bucket is none that an encoder writes."""
    header_floats = 1

    def __init__(self, spec):
        pass

    def header(self, bucket):
        return []

    def refuse(self, header, symbols):
        return False


class Dense(Codec):
    number, header_floats, coder = 0x01, 0, FixedWidth(32)

    def symbols(self, header, bucket, u):
        return [bits_of(x) for x in bucket]

    def value(self, header, symbol):
        return float_of(symbol)

    def refuse(self, header, symbols):
        return any(symbol & 0x7FFFFFFF >= INFINITY_BITS for symbol in symbols)


class Qsgd(Codec):
    def __init__(self, spec):
        self.s = 2**spec['bits'] - 1
        simple = spec['code'] == 'simple'
        self.number = 0x10 if simple else 0x11
        self.coder = FixedWidth(1 + spec['bits']) if simple else Elias(self.s)

    def header(self, bucket):
        return [up(math.sqrt(lane_sum(x * x for x in bucket)))]

    def symbols(self, header, bucket, u):
        return [self.symbol(header[0], x, u_i) for x, u_i in zip(bucket, u)]

    def symbol(self, norm, x, u):
        r = abs(x) * (self.s / norm) if norm > 0 else 0.0
        level = math.floor(r) + (u < chance(r - math.floor(r)))
        return 2 * level + is_signed(x) if level > 0 else 0

    def value(self, header, symbol):
        magnitude = f32(header[0] / self.s * (symbol >> 1))
        return -magnitude if symbol & 1 else magnitude

    def refuse(self, header, symbols):
        return 1 in symbols or (header[0] == 0 and any(symbols))


class TernGrad(Codec):
    number, coder = 0x12, BaseThree()

    def __init__(self, spec):
        self.clip = spec['clip']

    def header(self, bucket):
        s = max(abs(x) for x in bucket)
        if self.clip > 0 and s > 0:
            cut = nearest(self.clip * math.sqrt(lane_sum(x * x for x in bucket) / len(bucket)))
            s = min(s, max(cut, 2.0**-149))
        return [s]

    def symbols(self, header, bucket, u):
        s = header[0]
        return [1 + is_signed(x) if s > 0 and u_i < chance(abs(x) * (1 / s)) else 0 for x, u_i in zip(bucket, u)]

    def value(self, header, symbol):
        return [0.0, header[0], -header[0]][symbol]

    def refuse(self, header, symbols):
        return (header[0] > 0) != any(symbols)


class OneBit(Codec):
    number, header_floats, coder = 0x13, 2, FixedWidth(1)

    def header(self, bucket):
        negative = sum(x < 0 for x in bucket)
        upper = lane_sum(0.0 if x < 0 else x for x in bucket)
        lower = lane_sum(-x if x < 0 else 0.0 for x in bucket)
        return [nearest(upper / (len(bucket) - negative)) if negative < len(bucket) else 0.0,
                -nearest(lower / negative) if negative > 0 else 0.0]

    def symbols(self, header, bucket, u):
        return [int(x < 0) for x in bucket]

    def value(self, header, symbol):
        return header[symbol]

    def refuse(self, header, symbols):
        return any(symbols) != (header[1] < 0) or (all(symbols) and header[0] > 0)


class Sign(Codec):
    number, header_floats, coder = 0x14, 0, FixedWidth(1)

    def symbols(self, header, bucket, u):
        return [int(x < 0) for x in bucket]

    def value(self, header, symbol):
        return 1.0 - 2 * symbol


class EfSign(Codec):
    number, coder = 0x15, FixedWidth(1)

    def header(self, bucket):
        return [nearest(lane_sum(abs(x) for x in bucket) / len(bucket))]

    def symbols(self, header, bucket, u):
        return [int(x < 0 and header[0] > 0) for x in bucket]

    def value(self, header, symbol):
        return -header[0] if symbol else header[0]

    def refuse(self, header, symbols):
        return header[0] == 0 and any(symbols)


class LowPrecision(Codec):
    number = 0x16

    def __init__(self, spec):
        self.b = spec['bits']
        self.most = 2**(self.b - 1) - 1
        self.coder = FixedWidth(self.b)

    def header(self, bucket):
        delta = up(max(abs(x) for x in bucket) / self.most)
        return [delta if math.isfinite(f32(self.most * delta)) else float_of(bits_of(delta) - 1)]

    def symbols(self, header, bucket, u):
        return [self.level(header[0], x, u_i) % 2**self.b for x, u_i in zip(bucket, u)]

    def level(self, delta, x, u):
        r = (x * (1 / delta) if delta > 0 else 0.0) + (self.most + 1)
        level = math.floor(r) - (self.most + 1) + (u < chance(r - math.floor(r)))
        return max(-self.most, min(self.most, level))

    def value(self, header, symbol):
        level = symbol - 2**self.b if symbol > self.most else symbol
        return f32(level * header[0])

    def refuse(self, header, symbols):
        return (math.isinf(f32(self.most * header[0])) or self.most + 1 in symbols or
                (header[0] > 0) != any(symbols))


class Half(Codec):
    """Rounds by comparing a number with those of the format around it, found by bisection of their bits."""
    header_floats, coder = 0, FixedWidth(16)

    def symbols(self, header, bucket, u):
        return [self.symbol(x) for x in bucket]

    def symbol(self, x):
        low, high = 0, self.infinity - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.positive(middle) <= abs(x) else (low, middle - 1)
        if low < self.infinity - 1:
            below, above = abs(x) - self.positive(low), self.positive(low + 1) - abs(x)
            low += above < below or (above == below and low % 2 == 1)
        return low | is_signed(x) << 15

    def value(self, header, symbol):
        magnitude = self.positive(symbol & 0x7FFF)
        return -magnitude if symbol >> 15 else magnitude

    def refuse(self, header, symbols):
        return any(symbol & 0x7FFF >= self.infinity for symbol in symbols)


class Fp16(Half):
    number, infinity = 0x18, 0x7C00

    @staticmethod
    def positive(bits):
        return struct.unpack('<e', struct.pack('<H', bits))[0]


class Bf16(Half):
    number, infinity = 0x19, 0x7F80

    @staticmethod
    def positive(bits):
        return float_of(bits << 16)


CODECS = {'dense': Dense, 'qsgd': Qsgd, 'terngrad': TernGrad, 'one_bit': OneBit, 'signsgd': Sign, 'signum': Sign,
          'ef_signsgd': EfSign, 'low_precision': LowPrecision, 'fp16': Fp16, 'bf16': Bf16}
STOCHASTIC = {'qsgd', 'terngrad', 'low_precision'}


def bucket_size(codec, spec, size):
    return spec.get('bucket', 0) or size if codec.header_floats > 0 else size


def encode(spec, tensors, key):
    codec = CODECS[spec['name']](spec)
    stream = []
    for t, tensor in enumerate(tensors):
        u = [w / 2**32 for w in philox.draws(key, t, len(tensor))] if spec['name'] in STOCHASTIC else tensor
        step = bucket_size(codec, spec, len(tensor))
        for first in range(0, len(tensor), step):
            bucket = tensor[first:first + step]
            header = codec.header(bucket)
            for x in header:
                stream += field(bits_of(x), 32)
            stream += codec.coder.put(codec.symbols(header, bucket, u[first:first + step]))
    return pack(codec.number, stream)


def get_header(codec, stream):
    bits = [stream.get(32) for _ in range(codec.header_floats)]
    for i, word in enumerate(bits):
        lower = codec.number == OneBit.number and i == 1
        if word & 0x7FFFFFFF >= INFINITY_BITS or (word >> 31 != 0 and (not lower or word == 0x80000000)):
            raise ValueError('bad header')
        if lower and 0 < word < 0x80000000:
            raise ValueError('bad header')
    return [float_of(word) for word in bits]


def decode(spec, sizes, message):
    codec = CODECS[spec['name']](spec)
    if not message or message[0] != codec.number:
        raise ValueError('another format')
    stream = Stream(message)
    tensors = []
    for size in sizes:
        values = []
        step = bucket_size(codec, spec, size)
        for first in range(0, size, step):
            header = get_header(codec, stream)
            symbols = codec.coder.get(stream, min(step, size - first))
            if codec.refuse(header, symbols):
                raise ValueError('header and symbols do not fit')
            values += [codec.value(header, symbol) for symbol in symbols]
        tensors.append(values)
    stream.finish()
    return tensors
