"""Streamlit's private names, each with what the app does where a later version no longer has it.

No other module of the app imports a private name of Streamlit; a test reads the imports. The imports stand inside the
functions, so that a missing name ends nothing: CONTRIBUTING.md says how to upgrade.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

P = ParamSpec("P")
T = TypeVar("T")
CHANGE_ERRORS = (ImportError, AttributeError, TypeError, ValueError, RuntimeError, DecodeError)
"""Raised if a name or a message is not as in Streamlit 1.67, or if no server runs."""


def with_fallback(fallback_value: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a decorator whose function returns ``fallback_value`` if Streamlit lacks what the function uses."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        """Return the function with the fallback."""

        @functools.wraps(function)
        def call_with_fallback(*args: P.args, **kwargs: P.kwargs) -> T:
            """Call the function, or return the fallback."""
            try:
                return function(*args, **kwargs)
            except CHANGE_ERRORS:
                fallback: T = fallback_value
                return fallback

        return call_with_fallback

    return decorate


def _get_context() -> Any:
    """Return the context of the script that runs in this thread."""
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    return get_script_run_ctx()


@with_fallback("")
def get_session_id() -> str:
    """Return the name of the session that runs in this thread; empty if unknown, and its work never stops by itself."""
    return str(_get_context().session_id)


@with_fallback(False)
def is_fragment_run() -> bool:
    """Return True if a fragment runs alone; else dialogs open at the next run of the whole app only."""
    return bool(_get_context().fragment_ids_this_run)


@with_fallback(None)
def find_runtime() -> Any:
    """Return the server's runtime; None where no server runs, and then ended sessions are freed by Streamlit."""
    from streamlit.runtime import Runtime

    return Runtime.instance()


@with_fallback(True)
def is_connected(session_id: str) -> bool:
    """Return True if a browser is connected to the session, or if nobody knows."""
    return bool(find_runtime().is_active_session(session_id))


@with_fallback(None)
def find_session(session_id: str) -> Any:
    """Return Streamlit's object of the session of this name; None if it knows none, as in a check of its health."""
    return find_runtime().get_app_session(session_id)


@with_fallback(None)
def build_heartbeat() -> Any:
    """Return a message of a browser that asks for nothing."""
    from streamlit.proto.BackMsg_pb2 import BackMsg

    return BackMsg(app_heartbeat=True)


@with_fallback(None)
def free_files(files: Sequence[UploadedFile]) -> None:
    """Free the bytes of files whose uploader is not drawn again; else they stay until the session ends."""
    context = _get_context()
    for file in files:
        context.uploaded_file_mgr.remove_file(session_id=context.session_id, file_id=file.file_id)


@with_fallback(False)
def asks_for_run(message_bytes: bytes | None) -> bool:
    """Return True if a browser's message asks for a run because somebody did something; else no gate closes."""
    from streamlit.proto.BackMsg_pb2 import BackMsg

    message = BackMsg.FromString(message_bytes or b"")
    return message.WhichOneof("type") == "rerun_script" and not message.rerun_script.is_auto_rerun


@with_fallback("")
def read_session_id(message_bytes: bytes | None) -> str:
    """Return the name of the session that a message to the browser opens; empty for none, and then no gate closes."""
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    return str(ForwardMsg.FromString(message_bytes or b"").new_session.initialize.session_id)


@with_fallback(None)
def find_static_folder() -> Path | None:
    """Return the folder of Streamlit's own scripts; None, and then Streamlit serves them itself."""
    from streamlit import file_util

    return Path(file_util.get_static_dir())
