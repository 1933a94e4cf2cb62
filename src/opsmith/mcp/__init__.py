"""Agents from outside, over the Model Context Protocol: the tasks, prompts, checks and verdicts of `opsmith mcp`.

The SDK (`mcp`, an extra) is imported by `server` and `over_http` alone; all else is plain functions on our own records.
"""
