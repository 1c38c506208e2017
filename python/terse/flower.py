"""Terse's codecs inside a Flower app: `agreed_weights` for its ClientApp, `AgreedWeights` around its strategy. Needs
`flwr` 1.42 or later (`pip install terse[flower]`). docs/PYTHON.md has an example, and says how the two ends stay in step.
"""

import logging
import os
import pathlib
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable, Mod
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from . import codecs
from ._agreed import BUFFERS, AgreedServer, Arrays, Update, duplicates
from ._agreed_client import AgreedClient, WeightsNeeded
from .errors import MalformedMessage, RunMismatch, TerseError

__all__ = ["AgreedWeights", "agreed_weights"]

_log = logging.getLogger("terse")
_RECORD = "terse"
_STATE = "terse-state"
_NEEDS_WEIGHTS = "terse.flower: weights needed: "


def _to_arrays(record: ArrayRecord) -> Arrays:
    return {name: array.numpy() for name, array in record.items()}


def _to_record(arrays: Mapping[str, Any]) -> ArrayRecord:
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def _replaced(content: RecordDict, name: str, record: Optional[ArrayRecord], more: Mapping[str, ConfigRecord]) -> RecordDict:
    """The content with another record under a name, or with none, and more records."""
    records: Dict[str, Any] = {key: value for key, value in content.items() if key != _RECORD}
    if record is None:
        records.pop(name, None)
    else:
        records[name] = record
    return RecordDict({**records, **more})


def _client_folder(state: Optional[str], context: Context) -> pathlib.Path:
    own = context.node_config.get(_STATE)
    if own is None:
        if state is None:
            raise TerseError(
                f"this client has no folder for its residual; start its SuperNode with --node-config '{_STATE}=\"FOLDER\"', "
                "or give agreed_weights a folder for all clients of the machine"
            )
        name = context.node_config.get("partition-id", context.node_id)
        own = os.path.join(os.path.expanduser(state), f"client-{name}")
    return pathlib.Path(str(own)) / f"run-{context.run_id}"


def agreed_weights(state: Optional[str] = None) -> Mod:
    """A mod for a ClientApp whose server's strategy is in AgreedWeights: `ClientApp(mods=[agreed_weights()])`.

    The app sees whole weights, as ever. What it has learned and was not sent stays in a folder on this machine: the one
    that the SuperNode's node config names as `terse-state`, or else in `state` one for each client, by the node config's
    `partition-id` or, without it, by the node's number, which is another one after a restart of a SuperNode without a key
    of its own. A run of Flower has a folder in it, `run-NUMBER`, which may be removed once the run is over.

    When the folder is damaged, used by another process, or not named, the reply to the server is an error that says so.
    """

    def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        fields = message.content.config_records.get(_RECORD)
        if fields is None:
            if any(True for _ in message.content.array_records.values()):
                _log.warning("weights came without terse.flower: the server's strategy is not in AgreedWeights")
            return call_next(message, context)
        with AgreedClient(_client_folder(state, context)) as client:
            try:
                return _answer(client, fields, message, context, call_next)
            except WeightsNeeded as error:
                return Message(Error(ErrorCode.MOD_FAILED_PRECONDITION, f"{_NEEDS_WEIGHTS}{error}"), reply_to=message)

    return mod


def _answer(
    client: AgreedClient, fields: ConfigRecord, message: Message, context: Context, call_next: ClientAppCallable
) -> Message:
    name = fields["record"]
    came = message.content.array_records.get(name)
    weights = client.receive(fields, {} if came is None else _to_arrays(came))
    message.content = _replaced(message.content, name, _to_record(weights), {})
    reply = call_next(message, context)
    if reply.has_error():
        return reply
    if not reply.content.array_records:
        reply.content = _replaced(reply.content, name, None, {_RECORD: ConfigRecord(client.acknowledge())})
        return reply
    if list(reply.content.array_records) != [name]:
        raise RunMismatch(
            f"the app's reply must have its weights as '{name}', as they came, and no other arrays; it has "
            f"{list(reply.content.array_records)}"
        )
    answer, whole = client.seal(_to_arrays(reply.content.array_records[name]))
    reply.content = _replaced(reply.content, name, _to_record(whole) if whole else None, {_RECORD: ConfigRecord(answer)})
    return reply


class AgreedWeights(Strategy):
    """A strategy around another, whose messages carry compressed differences: `AgreedWeights(FedAvg(...)).start(...)`.

    strategy: any that sends one ArrayRecord to all nodes, and takes one back. up: codec of the clients' updates
    (terse.codecs). down: codec of the model's change on its way to the clients; None sends the weights themselves. Either
    keeps what it does not send, the clients' on their disks, the server's in memory, and sends it later. buffers:
    patterns of the names of tensors that are averaged and not trained, whose change is sent exactly. Tensors that are not
    float32 are sent as they are.

    The wrapped strategy sees the weights that the clients hold, and their updates as whole weights; what its
    aggregate_train returns is where the model goes, as far as `down` carries it in this round. So it must start from the
    weights that it is given in each round, as FedAvg, FedAdam and most others do; FedAvgM starts from those that it
    returned last, and its momentum then sees the server's residual as well.

    Every client needs the mod agreed_weights. An update that does not fit or cannot be decoded is left out, with a
    warning in the log.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        up: codecs.Codec = codecs.sbc(density=0.01),
        down: Optional[codecs.Codec] = codecs.sbc(density=0.01),
        buffers: Sequence[str] = BUFFERS,
    ):
        self._strategy = strategy
        self._server = AgreedServer(up, down, buffers)
        self._record = ""  # the name under which the weights travel

    def summary(self) -> None:
        """Logs the wrapped strategy's settings."""
        self._strategy.summary()

    def residual(self) -> Arrays:
        """What `down` has not carried to the clients yet, as NumPy arrays by the names of the tensors that go through it."""
        return self._server.residual()

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Iterable[Message]:
        """The wrapped strategy's messages, with the weights' change in place of the weights."""
        self._server.agree(_to_arrays(arrays))
        return [self._compressed(one, arrays) for one in self._strategy.configure_train(server_round, arrays, config, grid)]

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As configure_train."""
        self._server.agree(_to_arrays(arrays))
        return [
            self._compressed(one, arrays) for one in self._strategy.configure_evaluate(server_round, arrays, config, grid)
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> Tuple[Optional[ArrayRecord], Optional[MetricRecord]]:
        """Has the wrapped strategy aggregate, and moves the agreed weights to where it says. Returns them."""
        restored, updates = self._restore(list(replies))
        arrays, metrics = self._strategy.aggregate_train(server_round, restored)
        if arrays is None:
            return None, metrics
        self._server.settle(updates)
        return _to_record(self._server.step(_to_arrays(arrays))), metrics

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> Optional[MetricRecord]:
        """As the wrapped strategy does it."""
        heard = []
        for reply in replies:
            if not self._is_error(reply) and _RECORD in reply.content:
                try:
                    self._server.hear(reply.metadata.src_node_id, reply.content[_RECORD])
                except (RunMismatch, MalformedMessage) as error:
                    _log.warning("node %d: %s", reply.metadata.src_node_id, error)
                    continue
                del reply.content[_RECORD]
            heard.append(reply)
        return self._strategy.aggregate_evaluate(server_round, heard)

    def _compressed(self, message: Message, arrays: ArrayRecord) -> Message:
        names = list(message.content.array_records)
        if len(names) != 1 or message.content.array_records[names[0]] is not arrays:
            raise TerseError(
                "the wrapped strategy sends other arrays than the weights that it was given, and terse.flower keeps only "
                f"those in step; its messages have {names}"
            )
        fields, whole = self._server.send(message.metadata.dst_node_id)
        self._record = names[0]
        record = ConfigRecord({**fields, "record": names[0]})
        message.content = _replaced(message.content, names[0], _to_record(whole) if whole else None, {_RECORD: record})
        return message

    def _restore(self, replies: List[Message]) -> Tuple[List[Message], List[Update]]:
        """The replies as the wrapped strategy expects them, and the updates in them."""
        restored = [reply for reply in replies if self._is_error(reply)]
        taken = []
        for reply in replies:
            if not reply.has_error():
                try:
                    taken.append((reply, self._take(reply)))
                except (RunMismatch, MalformedMessage) as error:
                    _log.warning("the update of node %d is left out: %s", reply.metadata.src_node_id, error)
        copies = duplicates([update for _, update in taken])
        for reply, update in taken:
            if update.key in copies:
                _log.warning(
                    "the update of node %d is left out: another node has a copy of its state folder; give each its own",
                    reply.metadata.src_node_id,
                )
        taken = [(reply, update) for reply, update in taken if update.key not in copies]
        for reply, update in taken:
            reply.content = _replaced(reply.content, self._record, _to_record(update.weights), {})
        return restored + [reply for reply, _ in taken], [update for _, update in taken]

    def _take(self, reply: Message) -> Update:
        if _RECORD not in reply.content:
            raise RunMismatch("it came without terse.flower; add the mod terse.flower.agreed_weights to its ClientApp")
        arrays = {
            name: array for record in reply.content.array_records.values() for name, array in _to_arrays(record).items()
        }
        return self._server.take(reply.metadata.src_node_id, reply.content[_RECORD], arrays)

    def _is_error(self, reply: Message) -> bool:
        if not reply.has_error():
            return False
        if (reply.error.reason or "").startswith(_NEEDS_WEIGHTS):
            _log.warning("node %d: %s", reply.metadata.src_node_id, reply.error.reason)
            self._server.forget(reply.metadata.src_node_id)
        return True
