"""A module for a client says which extra brings the client."""

__all__ = ["lacking"]


def lacking(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """The error of an import, with what to install."""
    what = f"autothrottle.{extra} needs {error.name}: pip install 'autothrottle[{extra}]'"
    return ModuleNotFoundError(what, name=error.name, path=error.path)
