"""Traces and metrics of turns, over OpenTelemetry: one advisor, free when it is not there.

The package asks for the extra `otel`, which is OpenTelemetry's API alone. An SDK, and where it
sends what it gets, is the application's choice.
"""

from retinue.errors import MissingExtraError

try:
    from retinue.telemetry.otel import Telemetry
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "opentelemetry":
        raise
    raise MissingExtraError(
        "retinue.telemetry needs the package opentelemetry-api; install it with:"
        " pip install 'retinue[otel]'"
    ) from error

__all__ = ["Telemetry"]
