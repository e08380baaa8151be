"""What happens when Datasette starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from datasette.utils import StartupError

from . import instances, keeping, queries, reconciling, semantic_layers
from .errors import BadConfiguration, RecallError
from .registered import UnknownEmbedder, embedder_named

if TYPE_CHECKING:
    from datasette.app import Datasette


class WronglyConfigured(StartupError, click.ClickException):
    """Datasette cannot start as it is configured; its command prints this as one line."""


def _check_embedder(datasette: Datasette) -> None:
    """Raises `BadConfiguration` for an embedder that nobody brings in; one that is only not
    installed is told of in answers."""
    name = semantic_layers.configured_embedder(datasette)
    try:
        if name is not None:
            embedder_named(datasette, name)
    except UnknownEmbedder as error:
        raise BadConfiguration("index.embedder", str(error)) from error
    except RecallError:
        return


async def start(datasette: Datasette) -> None:
    """Stops Datasette when it is configured wrongly (`WronglyConfigured`); else makes it ready.

    The vocabularies are loaded in the background, and where an index is to be watched that begins.
    On 1.0 the canned queries are stored.
    """
    try:
        await instances.check_configuration(datasette)
        _check_embedder(datasette)
    except BadConfiguration as error:
        raise WronglyConfigured(str(error.within(f"plugins.{instances.PLUGIN}"))) from error
    instances.warm_up(datasette)
    semantic_layers.warm_up(datasette)
    keeping.begin(datasette)
    reconciling.begin(datasette)
    await queries.store(datasette)
