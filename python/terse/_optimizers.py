"""The state of a torch optimizer: as bytes that are sealed with an update, and the momentum that masking makes zero."""

import io
import sys

from .errors import RunMismatch

# Where optimizers of torch keep their first moment: SGD, and Adam with its kin.
_MOMENTS = ("momentum_buffer", "exp_avg")


def check(optimizer, model) -> None:
    """Raises RunMismatch unless the optimizer is one that can be saved and masked with this model."""
    if optimizer is None:
        return
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(optimizer, torch.optim.Optimizer) or not hasattr(model, "parameters_at"):
        raise RunMismatch("an optimizer is one of torch's, for a model of torch; keep the state of others with commit(extra=bytes)")


def save(optimizer) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    return buffer.getvalue()


def restore(optimizer, state: bytes) -> None:
    import torch

    try:
        optimizer.load_state_dict(torch.load(io.BytesIO(state), map_location="cpu"))
    except (KeyError, RuntimeError, ValueError) as error:
        raise RunMismatch(f"the optimizer's state that was stored does not fit this optimizer: {error}. Make the optimizer as before, "
                          "or join with another state folder, as a new client") from error


def mask_momentum(optimizer, model, positions) -> None:
    """Makes the first moment of the given flat positions zero (SBC, supplement VII-A)."""
    for parameter, indices in model.parameters_at(positions):
        for key in _MOMENTS:
            moment = optimizer.state.get(parameter, {}).get(key)
            if moment is not None:
                moment.view(-1)[indices] = 0
