"""The applications of other tests, in processes that trace."""

from __future__ import annotations

import os

import dramatiq
from celery.signals import worker_process_init
from opentelemetry import trace

from celery_app import app as app
from otlp import provider_for
from pinpriq import Worker
from pinpriq.dramatiq import PinpriqBroker

worker = Worker()
broker = PinpriqBroker()


@dramatiq.actor(broker=broker)
def grind() -> None:
    """Only be there."""


@worker.job("jobs")
def work(value: str) -> None:
    with trace.get_tracer("app").start_as_current_span(f"inside {value}"):
        pass


def start_tracing(**_: object) -> None:
    """Do what the configuration of an application does."""
    trace.set_tracer_provider(provider_for(os.environ["TRACES"]))


if "TRACE_EACH_PROCESS" in os.environ:
    worker_process_init.connect(start_tracing)
else:
    start_tracing()
