"""What a model is asked: the columns a task reads, its loss, its answers and its scores.

A training loop knows a task by `Task` alone and has no branch on its name or on an architecture.
"""
