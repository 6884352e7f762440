"""What is known of a session's context window, from all that may tell it."""

from __future__ import annotations

from savepoint.store.session import context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.agents.adapter import Adapter
    from savepoint.capture.request import Request
    from savepoint.store.layout import Store


def known(store: Store, key: str, request: Request, adapter: Adapter) -> Request:
    """The request with what the status line was told, and what the agent's settings say."""
    figures = context.figures(store, key)
    window = request.window._replace(
        settings=adapter.settings_window(request.config_dir, request.project),
        status_line=figures.window if figures else None,
    )
    return request._replace(window=window)
