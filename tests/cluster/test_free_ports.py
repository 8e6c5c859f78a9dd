"""Ports that processes hand out at the same time are never the same."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import free_ports
from free_ports import BLOCK, LOOPBACK, free_port

ASK = "from free_ports import free_port; print(*(free_port() for _ in range(300))); input()"


def test_ports_of_concurrent_processes_differ() -> None:
    folder = Path(free_ports.__file__).parent
    words = [sys.executable, "-c", ASK]
    asked = [
        subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    handed: list[set[int]] = [{free_port() for _ in range(BLOCK)}]
    for one in asked:
        assert one.stdout is not None
        handed.append({int(word) for word in one.stdout.readline().split()})
    for one in asked:
        one.communicate(b"\n")
    assert all(len(ports) > BLOCK / 2 for ports in handed)
    assert len(set().union(*handed)) == sum(map(len, handed))


def test_port_with_a_listener_is_passed_over() -> None:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, free_port()))
        listener.listen()
        taken = listener.getsockname()[1]
        assert taken not in {free_port() for _ in range(2 * BLOCK)}
