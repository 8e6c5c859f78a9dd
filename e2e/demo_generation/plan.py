"""All numbers of the demo of generation: its steps of load and the required results.

An iteration of the sample takes a = 30 ms, d = 3 ms per sequence and b = 20 us per prompt token.
With prompts of 800 and answers of 100 tokens a request needs w = 316 ms of an engine, so that at
R requests per second an iteration, and so an output token, takes a / (1 - w R) on average:

    requests per second and replica       1.0     1.6     2.0     2.4
    time per output token, mean          44 ms   61 ms   82 ms   124 ms

    seconds                               60      60      60      60     180
    requests per second                   1.0     2.0     3.5     5.0     1.2
    replicas at 2 per second each          1      1       2       3       1

Steps are at most twofold: steeper ones would chiefly show how long a cold start takes. In the
simulator, with cold starts of 10 s and three seeds, at least 99 % of the requests keep both
promises; the last replica too many is kept, because one at 75 % of its rate has no margin.
"""

from __future__ import annotations

from demo.plan import REPOSITORY
from demo.scene import Scene
from load.token_plan import Lengths, duration_s, steps

STEPS = "60x1,60x2,60x3.5,60x5,180x1.2"
LENGTHS = Lengths(prompt_tokens=800, output_tokens=100, vocabulary=256)
SEED = 1
DURATION_S = duration_s(steps(STEPS))
SAMPLE = REPOSITORY / "deploy" / "samples" / "generation-demo.yaml"
COMMAND = ("python", "-m", "load.tokens")

WINDOW_S = 10.0
RECENT_S = 10.0
LEAST_ATTAINMENT = 0.95
"""Attainment of all requests, for both promises together, from a cost that is not known."""
LAST_STRETCH_S = 60.0
"""Each promise must hold at the end alone, after replicas were removed."""
LATEST_SEND_S = 0.1


def scene(*, keep: bool) -> Scene:
    """Return where it plays."""
    return Scene(
        cluster="demo-generation",
        namespace="headroom-demo-generation",
        sample=SAMPLE,
        duration_s=DURATION_S,
        keep=keep,
    )
