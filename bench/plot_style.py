"""What the pictures of bench/ have in common."""

PAPER = "#fbfbf9"
INK = "#22262b"
FAINT = "#8b9299"
FONT = {"font.family": "DejaVu Sans", "svg.hashsalt": "terse", "text.color": INK}
