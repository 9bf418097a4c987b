"""`Driver`: which thread makes a client's passes, and how other threads wait.

    in process          the caller's thread: `run` does a pass, `wait` parks in the scheduler
    TCP, no linger      the caller's thread: one of those that wait polls the sockets
    TCP, with linger    a thread of its own; callers wake it and wait for its news

In the first two, `producer.passes` does what callers leave undone.

A pass never waits. Parking in process holds no lock; polling sockets holds the turn, as only one
thread may use them: a thread that wants to send wakes the one that polls, and is next. The other
threads that wait sleep until something has arrived, or until they are to poll.
"""

from __future__ import annotations

from _thread import get_ident
from _weakref import ref

from embedlog.client.news import News
from embedlog.client.pass_thread import PassThread
from embedlog.client.turn_lock import TurnLock
from embedlog.errors import EmbedlogError
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport

_PARK_MS = 1 << 30


class Driver:
    """Runs `step`, a pass that returns milliseconds until the next one is useful.

    `recover` is called before the next pass when Ctrl-C has ended one, between any two of its
    steps, or something else that this did in the user's thread.
    """

    def __init__(
        self,
        transport: Transport,
        step: Callable[[], int | None],
        recover: Callable[[], None] | None = None,
        *,
        threaded: bool,
        name: str = "embedlog-producer",
    ) -> None:
        self._transport = transport
        self._step = step
        self._recover = recover
        self._is_cut_short = False
        """Did Ctrl-C end something since `recover` was called?"""
        self._scheduler = transport.runtime.scheduler
        self._clock = transport.runtime.clock
        # In process no thread waits while it has the turn: there a plain lock is fair enough.
        self._turns = None if transport.concurrent else TurnLock()
        self._own_turn = ranked_rlock(Rank.DRIVER)  # why: `runtime.pending`
        self._poller: dict[str, int] = {}
        """The thread that polls, of those that wait."""
        self._runner = 0
        self._news = News()
        self.arrived = self._news.arrived
        """There is something for the next pass, or for those who wait. From any thread."""
        self.delay: int | None = None
        """What the last pass returned."""
        self._threaded = threaded
        self._thread = PassThread(transport, name)
        key = id(self)
        _drivers[key] = ref(self, lambda _: _drivers.pop(key, None))

    def run(self) -> None:
        """Do what can be done now: a pass in this thread, or a word to the thread that does it.

        Called from a user's callback it does nothing: the pass below it goes on by itself. Nor in
        a callback of another client while a third thread is in a pass here: of two threads whose
        callbacks use each other's client each would wait for the other. That pass does it, or one
        of `UnattendedPasses`.
        """
        if self._threaded:
            self._thread.start(self._pass)
            self._transport.wake()
        elif self._turns is not None:
            runner, me = self._runner, get_ident()
            if runner != me and not (runner and _is_in_a_pass(me)):
                self._pass()
        else:
            # In process: the pass itself, without a call for it, as one happens for each record.
            runner, me = self._runner, get_ident()
            if runner != me and not (runner and _is_in_a_pass(me)):
                with self._own_turn:
                    self._runner = me
                    try:
                        if self._is_cut_short and self._recover is not None:
                            self._recover()
                        self._is_cut_short = True
                        self.delay = self._step()
                        self._is_cut_short = False
                    except Exception:  # of a user's callback, or a defect: the step has seen to it
                        self._is_cut_short = False
                        raise
                    finally:
                        self._runner = 0

    def wait(
        self,
        is_done: Callable[[], bool],
        timeout_ms: int | None,
        *,
        is_news: Callable[[], bool] | None = None,
        patience_ms: int = _PARK_MS,
    ) -> bool:
        """Drive until `is_done()`, at most `timeout_ms` (None: for ever); say whether it is.

        `is_done` is asked after each pass. If it leaves something to do it calls `run`. Where a
        thread makes the passes it asks `is_news()` after each whether to wake the one that waits,
        as waking it costs more than a pass; that one also looks itself every `patience_ms`.

        Raises:
            EmbedlogError: called from a delivery callback, which would wait for itself.
        """
        if self._runner and self._runner == get_ident():
            if is_done():
                return True
            raise EmbedlogError("waiting inside a delivery callback would wait for itself")
        if self._threaded:
            # Once: a pass has news for those who wait, so each waking the other would never end.
            self.run()
        elif self._turns is None:
            # In process the pass itself brings most answers: nobody has to listen for them.
            self._pass()
            if is_done():
                return True
        deadline = _PARK_MS if timeout_ms is None else timeout_ms
        deadline += self._clock.monotonic_ms()
        try:
            while True:
                listener = self._news.listen(is_news if self._threaded else None)
                try:
                    if not self._threaded:
                        self.run()
                    left = deadline - self._clock.monotonic_ms()
                    if is_done():
                        return True
                    if left <= 0:
                        return False
                    self._park(listener.pending, min(left, patience_ms))
                finally:
                    self._news.stop_listening(listener)
        finally:
            # This thread may have been the one that polls: another that waits takes over.
            self._news.arrived()

    def run_if_free(self) -> None:
        """A pass, unless another thread is in one or waits with the sockets: it drives."""
        if not self._runner and (self._turns is None or not self._turns.is_taken):
            self._pass()

    def exclusively(self, action: Callable[[], None]) -> None:
        """Run `action` while no pass runs."""
        if self._runner == get_ident():
            action()
            return
        self._in_turn(action)

    @property
    def is_running_here(self) -> bool:
        """Is this thread inside a pass, that is in a user's callback?"""
        return self._runner == get_ident()

    def close(self, timeout_ms: int) -> None:
        """Stop the thread, if there is one; it ends by itself when it is the one that calls."""
        self._thread.stop()
        self._transport.wake()
        if self.is_running_here:
            return
        self._thread.join(timeout_ms)
        self._threaded = False

    def _pass(self) -> int | None:
        self._in_turn(self._pass_in_turn)
        if self._threaded:
            self._news.arrived()
        return self.delay

    def _pass_in_turn(self) -> None:
        self._runner = get_ident()
        try:
            if self._is_cut_short and self._recover is not None:
                self._recover()
            self._is_cut_short = not self._threaded
            if self._turns is not None and not self._threaded:
                self._transport.poll()  # nobody may be waiting, and answers make room
            self.delay = self._step()
            self._is_cut_short = False
        except Exception:  # of a user's callback, or a defect: the step has seen to it
            self._is_cut_short = False
            raise
        finally:
            self._runner = 0

    def _note(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            self._is_cut_short = True

    def _in_turn(self, action: Callable[[], None]) -> None:
        if self._turns is None:
            # No Ctrl-C can come between `with` having the lock and what gives it back.
            with self._own_turn:
                action()
        else:
            self._turns.acquire(self._transport.wake)
            try:
                action()
            finally:
                self._turns.release()

    def _park(self, news: Pending[object], left: int) -> None:
        if self._threaded:
            self._scheduler.wait(news, left)
        elif self._transport.concurrent:
            try:
                self._transport.wait(news, self._until_next_pass(left))
            except BaseException as error:
                # This thread may have run the broker's duties, and have been about to tell of one.
                self._note(error)
                raise
        elif self._poller.setdefault("thread", get_ident()) == get_ident():
            assert self._turns is not None, "in process nobody polls"
            try:
                self._turns.acquire()
                try:
                    # Now, not earlier: another thread's pass may have found more to come back for.
                    self._transport.wait(news, self._until_next_pass(left))
                except BaseException as error:
                    self._note(error)
                    raise
                finally:
                    self._turns.release()
            finally:
                self._poller.clear()
        else:
            self._scheduler.wait(news, self._until_next_pass(left))

    def _until_next_pass(self, left: int) -> int:
        return left if self.delay is None else min(left, max(self.delay, 1))


_drivers: dict[int, ref[Driver]] = {}
"""Every driver of this process, by id."""


def _is_in_a_pass(thread: int) -> bool:
    """Is the thread in a pass of any driver, that is in a user's callback?"""
    for reference in list(_drivers.values()):
        driver = reference()
        if driver is not None and driver._runner == thread:
            return True
    return False
