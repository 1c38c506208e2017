"""What the pictures of bench/ have in common."""

PAPER = "#fbfbf9"
INK = "#22262b"
FAINT = "#8b9299"
FONT = {"font.family": "DejaVu Sans", "svg.hashsalt": "terse", "text.color": INK}


def quiet(axes):
    """Takes everything off a picture's frame but its grid and its numbers."""
    axes.set_facecolor(PAPER)
    axes.tick_params(colors=FAINT, labelcolor=INK, length=0)
    axes.grid(color="#e4e6e3", linewidth=0.6)
    for side in axes.spines.values():
        side.set_visible(False)


def save(figure, path):
    """Writes a figure beside `path` as .svg, the same bytes on every day, and as .png."""
    figure.savefig(path.with_suffix(".svg"), facecolor=PAPER, metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), facecolor=PAPER, dpi=130)
