"""A succession from disk to disk: read all, eight steps, write all as one."""

from __future__ import annotations

from savepoint.core.named import NamedTuple
from savepoint.store import registry
from savepoint.store.layout import Home, session_key
from succession.dynasty import branch
from succession.dynasty.session import commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.capture.request import Request
    from savepoint.store.layout import Store
    from succession.dynasty.branch import Branch
    from succession.dynasty.session.commits import Asked
    from succession.dynasty.session.dawn import Git
    from succession.dynasty.session.observe import Covering
    from succession.dynasty.steps import Succession


class Ran(NamedTuple):
    """A succession, and what it found that people must know."""

    succession: Succession
    aside: tuple[str, ...]  # what people's edits during a change were set aside as


def run(request: Request, covering: Covering | None, reason: str, *, dry: bool) -> Ran:
    """Run a succession; see `succession.dynasty.run`."""
    store = registry.find(Home(request.home), request.project)
    here = branch.current(request.project, request.cwd, request.environment)
    asked = commits.ask(store, here, request.environment)
    from succession.dynasty import keep, steps  # git works meanwhile

    git = _git(store, here, asked, covering)
    with keep.opened(store, here, request.now, request.deadline, whole=True) as held:
        state, archive = held.state, b""
        if covering is not None:
            from succession.dynasty import record
            from succession.dynasty.session import observe

            found = observe.observations(store, covering, git.commits, state.meta)
            done = record.observe(state, found, request.now, session_key(request.session_id))
            state, archive = done.state, done.archive
        state = state._replace(
            meta=state.meta._replace(commit=here.commit or state.meta.commit),
            archive=state.archive + archive,
        )
        result = steps.succeed(state, git, reason, request.now)
        aside: list[str] = []
        if not dry:
            lines = archive + result.archive
            aside = held.write(result.state, held.seen, result.lineage, lines)
    return Ran(result, (*held.aside, *aside))


def note(request: Request, covering: Covering) -> None:
    """Draw observations from a savepoint that a turn made; see `succession.dynasty.note`."""
    store = registry.find(Home(request.home), request.project)
    here = branch.current(request.project, request.cwd, request.environment)
    asked = commits.ask(store, here, request.environment)
    from succession.dynasty import keep, record
    from succession.dynasty.session import observe

    git = _git(store, here, asked, covering)
    with keep.opened(store, here, request.now, request.deadline, whole=True) as held:
        if not held.exists:
            return
        found = observe.observations(store, covering, git.commits, held.state.meta)
        origin = session_key(request.session_id)
        done = record.observe(held.state, found, request.now, origin)
        meta = done.state.meta._replace(commit=here.commit or held.state.meta.commit)
        held.write(done.state._replace(meta=meta), held.seen, archive=done.archive)


def _git(store: Store, here: Branch, asked: Asked | None, covering: Covering | None) -> Git:
    """The state of the repository: commits from git, changed files as the savepoint has them."""
    from succession.dynasty.session.dawn import Git

    if here.worktree is None:
        return Git()
    changes = None
    if covering is not None:
        from succession.dynasty.session import observe

        changes = observe.changes(store, covering.document)
    return Git(here.name, asked.finish() if asked else (), changes)
