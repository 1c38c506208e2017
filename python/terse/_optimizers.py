"""The state of a torch optimizer: as bytes that are sealed with an update, and the momentum that masking makes zero."""

import io

# Where optimizers of torch keep their first moment: SGD, and Adam with its kin.
_MOMENTS = ("momentum_buffer", "exp_avg")


def save(optimizer) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    return buffer.getvalue()


def restore(optimizer, state: bytes) -> None:
    import torch

    optimizer.load_state_dict(torch.load(io.BytesIO(state), map_location="cpu"))


def mask_momentum(optimizer, model, positions) -> None:
    """Makes the first moment of the given flat positions zero (SBC, supplement VII-A)."""
    for parameter, indices in model.parameters_at(positions):
        for key in _MOMENTS:
            moment = optimizer.state.get(parameter, {}).get(key)
            if moment is not None:
                moment.view(-1)[indices] = 0
