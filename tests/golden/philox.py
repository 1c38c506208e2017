"""The random draws of stochastic codecs: Philox from its paper, the rest from compression/FORMAT.md, "Random draws"."""

M64 = 2**64 - 1
M32 = 2**32 - 1


def philox4x32(counter, key, rounds=10):
    """One block: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011), section 5.3."""
    (l0, r0, l1, r1), (k0, k1) = counter, key
    for _ in range(rounds):
        high0, low0 = divmod(0xD2511F53 * l0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * l1, 2**32)
        l0, r0, l1, r1 = high1 ^ r0 ^ k0, low1, high0 ^ r1 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return [l0, r0, l1, r1]


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def draws(key, tensor, count):
    """The first `count` draws of tensor number `tensor`; key is (run, round, client)."""
    run, round_number, client = key
    golden = 0x9E3779B97F4A7C15
    generator = mix((run + golden) & M64)
    encoding = mix((mix((round_number + golden) & M64) + client) & M64)
    words = []
    for block in range((count + 3) // 4):
        words += philox4x32([block, tensor, encoding & M32, encoding >> 32], [generator & M32, generator >> 32])
    return words[:count]


def self_check():
    """The published known answers of Philox4x32-10."""
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    assert philox4x32([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox4x32([M32] * 4, [M32] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert philox4x32(pi[:4], pi[4:]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


self_check()
