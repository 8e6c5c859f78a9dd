"""Load generator without dependencies beyond aiohttp; replays a recorded trace from a pod."""
