"""A OneBot v11 implementation without QQ: drives the tests, the demo and the load runs.

- ``World`` holds what one bot account sees: people, groups, friends, history.
- ``OneBotClient`` connects to an application as NapCat does, delivers events, answers API
  calls from the world, and records what the application called and sent.
- ``Scene`` lets people act: each act changes the world and is delivered.
- ``behave`` on the client makes calls fail, hang, come late or cut the line, each in the
  variants "it was sent" and "it was not".
- ``events``, ``segments`` and ``cq`` build raw events, also broken ones, without any of these.
- ``WorldPlatform`` answers the same calls without a socket, for what stands above the edge.
- ``VirtualClock`` is a ``bot.clock.Clock`` that stands still until it is advanced.

```python
world = World(Person(3001, "小忆"))
world.add_group(2001, "测试群", Person(1001, "Alice", role="owner"))
async with OneBotClient(Endpoint(port), world) as client:
    await Scene(client).say(2001, 1001, segments.at(3001), " 你好")
    (sent,) = await client.wait_for_sent(chat=world.group_chat(2001))
```

Nothing here knows of NoneBot, and nothing reads the wall clock but through a ``Clock``.
"""

from bot.simulate import cq, events, segments
from bot.simulate.actions import ACTIONS, SENDING, Call, Sent, SentNode
from bot.simulate.behaviour import (
    Behaviour,
    CallFilter,
    Delay,
    Disconnect,
    Fail,
    ReportFirst,
    Silence,
)
from bot.simulate.client import Endpoint, OneBotClient, handshake_headers
from bot.simulate.clock import VirtualClock
from bot.simulate.errors import HandshakeRefused, NotConnected, Refusal, SimulatorError, Unknown
from bot.simulate.events import BROKEN, RawEvent
from bot.simulate.platform import WorldPlatform
from bot.simulate.scene import Scene
from bot.simulate.segments import RawSegment
from bot.simulate.world import (
    Content,
    ForwardNode,
    Group,
    PendingRequest,
    Person,
    Utterance,
    World,
    positive_ids,
    reused_ids,
    signed_ids,
)

__all__ = [
    "ACTIONS",
    "BROKEN",
    "SENDING",
    "Behaviour",
    "Call",
    "CallFilter",
    "Content",
    "Delay",
    "Disconnect",
    "Endpoint",
    "Fail",
    "ForwardNode",
    "Group",
    "HandshakeRefused",
    "NotConnected",
    "OneBotClient",
    "PendingRequest",
    "Person",
    "RawEvent",
    "RawSegment",
    "Refusal",
    "ReportFirst",
    "Scene",
    "Sent",
    "SentNode",
    "Silence",
    "SimulatorError",
    "Unknown",
    "Utterance",
    "VirtualClock",
    "World",
    "WorldPlatform",
    "cq",
    "events",
    "handshake_headers",
    "positive_ids",
    "reused_ids",
    "segments",
    "signed_ids",
]
