"""Snapshots of this host's cards. `client` is what the rest uses; everything that loads NVML runs in its child.

client -> child ~> worker -> read -> cards -> memory, processes -> bindings -> pynvml
"""
